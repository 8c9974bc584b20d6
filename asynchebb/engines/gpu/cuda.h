// The words that the engine's code is written in, as CUDA has them.
#define DEVICE static __device__ __forceinline__
#define MEMBER __device__ __forceinline__  // the same, of a structure
#if FEW
#define OUTLINED static __device__ __noinline__
#define SHARED_MEMORY shared_memory
#else
#define OUTLINED DEVICE
#endif
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")  // or the code would not fit in the instruction cache
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#ifndef SPENT
#define SPENT(part)  // `benchmarks/gpu_cycles.py` counts the cycles that each part of a hold takes
#endif
#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif
#define KERNEL(name, ...) \
    extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS / WIDE, BLOCKS) name(__VA_ARGS__)
extern __shared__ __align__(16) char shared_memory[];

#if WIDE == 1
#define THREAD threadIdx.x
#define BLOCK (blockIdx.x / CLUSTER)
#define BLOCKS_HERE ((int)gridDim.x)
#define MEMORY(nets) shared_memory

DEVICE void begin(char* at) {}
DEVICE void sync() { __syncthreads(); }
DEVICE bool sync_or(int x) { return __syncthreads_or(x); }
#else  // several blocks have one network, and meet in global memory
#define THREAD (blockIdx.x % WIDE * (THREADS / WIDE) + threadIdx.x)
#define BLOCK (blockIdx.x / WIDE)
#define MEMORY(nets) (nets[BLOCK].meeting + sizeof(Meeting))

struct alignas(64) Meeting {  // 0 at first
    unsigned long long arrived;
    int said[3];  // at this turn, the one before and the next
};
__shared__ Meeting* meeting;
__shared__ unsigned long long expected;
__shared__ int turn;

DEVICE void begin(char* at) {
    if (threadIdx.x == 0) meeting = (Meeting*)at, expected = 0, turn = 0;
    __syncthreads();
}
DEVICE void sync() {
    __syncthreads();
    if (threadIdx.x == 0) {
        expected += WIDE;
        __threadfence();
        atomicAdd(&meeting->arrived, 1ull);
        while (*(volatile unsigned long long*)&meeting->arrived < expected) {}
        __threadfence();
    }
    __syncthreads();
}
DEVICE bool sync_or(int x) {
    int now = turn % 3, any = __syncthreads_or(x);
    if (threadIdx.x == 0) {
        if (any) *(volatile int*)&meeting->said[now] = 1;
        if (blockIdx.x % WIDE == 0) *(volatile int*)&meeting->said[(now + 1) % 3] = 0;  // no one reads or writes it now
        turn++;
    }
    sync();
    return *(volatile int*)&meeting->said[now];
}
#endif

// Four numbers that are read once: they need no place in a multiprocessor's own cache.
DEVICE void read_streamed(float* to, const float* from) {
    float4 found = __ldcg((const float4*)from);
    to[0] = found.x, to[1] = found.y, to[2] = found.z, to[3] = found.w;
}
DEVICE void read_streamed(double* to, const double* from) {
    double2 first = __ldcg((const double2*)from), second = __ldcg((const double2*)from + 1);
    to[0] = first.x, to[1] = first.y, to[2] = second.x, to[3] = second.y;
}

// One number from global memory if a condition holds; else it is left as it is.
DEVICE void read_global_if(bool condition, int* to, const int* from) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1];}"
                 : "+r"(*to) : "l"(from), "r"((unsigned)condition));
}
DEVICE void read_global_if(bool condition, unsigned char* to, const unsigned char* from) {
    unsigned found = *to;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u8 %0, [%1];}"
                 : "+r"(found) : "l"(from), "r"((unsigned)condition));
    *to = found;
}
DEVICE void read_global_if(bool condition, float* to, const float* from) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.f32 %0, [%1];}"
                 : "+f"(*to) : "l"(from), "r"((unsigned)condition));
}
DEVICE void read_global_if(bool condition, double* to, const double* from) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.f64 %0, [%1];}"
                 : "+d"(*to) : "l"(from), "r"((unsigned)condition));
}

// x *= by, each of four, if a < b: without a branch, since most of these would be taken by some.
DEVICE void multiply_if_less(unsigned a, unsigned b, float* x, const float* by) {
    asm("{.reg .pred p; setp.lt.u32 p, %8, %9;\n@p mul.ftz.f32 %0, %0, %4; @p mul.ftz.f32 %1, %1, %5;\n"
        "@p mul.ftz.f32 %2, %2, %6; @p mul.ftz.f32 %3, %3, %7;}"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "f"(by[0]), "f"(by[1]), "f"(by[2]), "f"(by[3]), "r"(a), "r"(b));
}
DEVICE void multiply_if_less(unsigned a, unsigned b, double* x, const double* by) {
    UNROLL for (int e = 0; e < 4; e++) x[e] = a < b ? x[e] * by[e] : x[e];
}

// A pointer into global memory, as such: the compiler cannot know it of one that it reads from memory.
template <typename T> DEVICE T* global(T* place) {
    __builtin_assume(__isGlobal(place));
    return place;
}

#if FEW
// The first so many warps of a block wait for each other.
DEVICE void sync_first(int warps) { asm volatile("bar.sync 1, %0;" :: "r"(32 * warps) : "memory"); }
#endif
// A number of which nothing is known.
DEVICE int hidden(int x) {
    asm volatile("" : "+r"(x));
    return x;
}
// A whole number as a real one, now and not when it is needed.
DEVICE real to_real(long long x) {
    real found;
    if constexpr (sizeof(real) == 4)
        asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"((float&)found) : "l"(x));
    else
        asm volatile("cvt.rn.f64.s64 %0, %1;" : "=d"((double&)found) : "l"(x));
    return found;
}
// Code that is not to be joined with other code that does the same: which registers it uses must be known.
#define UNLIKE(number) asm volatile("// %0" :: "n"(number))
// What was asked for before is asked for at once: the compiler would wait for each before it asks for the next.
DEVICE void together() { asm volatile("bar.warp.sync %0;" :: "r"(__activemask()) : "memory"); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE unsigned vote(bool x) { return __ballot_sync(~0u, x); }
DEVICE bool vote_any(bool x) { return __any_sync(~0u, x); }
DEVICE float reciprocal(float x) { return __frcp_rn(x); }
DEVICE double reciprocal(double x) { return 1 / x; }
DEVICE int popcount(unsigned x) { return __popc(x); }
template <typename T> DEVICE T shuffle(T x, int lane) { return __shfl_sync(~0u, x, lane); }
template <typename T> DEVICE T shuffle_xor(T x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE bool replace(volatile int* place, int x, int by) { return atomicCAS((int*)place, x, by) == x; }
DEVICE int add_one(volatile int* place) { return atomicAdd((int*)place, 1); }
DEVICE void fence() { __threadfence(); }
DEVICE void add_to(long long* place, long long x) { atomicAdd((unsigned long long*)place, (unsigned long long)x); }
#define SIZE(name, size) extern "C" __device__ int name = size

// Four numbers from shared memory. A compiler that is short of registers would ask for one after the other.
DEVICE void read_shared(float* to, const float* from) {
    unsigned place = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(place));
}
DEVICE void read_shared(double* to, const double* from) {
    unsigned place = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(to[0]), "=d"(to[1]) : "r"(place));
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(to[2]), "=d"(to[3]) : "r"(place + 16));
}
DEVICE void read_shared(int* to, const int* from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((unsigned)__cvta_generic_to_shared(from)));
}
DEVICE void read_one(float* to, const float* from) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(*to) : "r"((unsigned)__cvta_generic_to_shared(from)));
}
DEVICE void read_one(double* to, const double* from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(*to) : "r"((unsigned)__cvta_generic_to_shared(from)));
}
// Four numbers if a condition holds; else they are left as they are.
DEVICE void read_shared_if(bool condition, float* to, const float* from) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];}"
                 : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)), "r"((unsigned)condition));
}
DEVICE void read_shared_if(bool condition, double* to, const double* from) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.shared.v2.f64 {%0, %1}, [%4];\n"
                 "@p ld.shared.v2.f64 {%2, %3}, [%4 + 16];}"
                 : "+d"(to[0]), "+d"(to[1]), "+d"(to[2]), "+d"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)), "r"((unsigned)condition));
}
// One number to shared memory if a condition holds.
DEVICE void write_shared_if(bool condition, float* to, float x) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.f32 [%0], %1;}"
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "f"(x), "r"((unsigned)condition) : "memory");
}
DEVICE void write_shared_if(bool condition, double* to, double x) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.f64 [%0], %1;}"
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "d"(x), "r"((unsigned)condition) : "memory");
}

// A cluster: blocks that have one network, each with some of its neurons. They write words into each other's shared
// memory, each of two numbers that are written and read at once.
#define RANK ((int)(blockIdx.x % CLUSTER))  // of this block in its cluster
typedef unsigned Elsewhere;                 // a place in the shared memory of any of its blocks

DEVICE Elsewhere place_in(int rank, const void* place) {  // where another block has what is at this place here
    Elsewhere there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(rank));
    return there;
}
DEVICE void meet() {  // all threads of the cluster
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEVICE void give_way() {}
// The upper half of all such places' addresses. Stores that are not told it would read it again each time, slowly.
DEVICE unsigned window() {
    unsigned found;
    asm volatile("{.reg .b64 none, there; .reg .b32 low; mov.b64 none, 0;\n"
                 "cvta.shared::cluster.u64 there, none; mov.b64 {low, %0}, there;}" : "=r"(found));
    return found;
}
template <int AFTER> DEVICE void send_if(bool condition, unsigned window, Elsewhere place, unsigned first, unsigned second) {
    asm volatile("{.reg .pred p; .reg .b64 there, word; setp.ne.u32 p, %4, 0; mov.b64 there, {%0, %1};\n"
                 "mov.b64 word, {%2, %3}; @p st.relaxed.cluster.b64 [there + %5], word;}"
                 ::"r"(place), "r"(window), "r"(first), "r"(second), "r"((unsigned)condition), "n"(AFTER) : "memory");
}
DEVICE void read_word(unsigned& first, unsigned& second, const void* from) {
    asm volatile("{.reg .b64 word; ld.relaxed.cluster.shared.b64 word, [%2]; mov.b64 {%0, %1}, word;}"
                 : "=r"(first), "=r"(second) : "r"((unsigned)__cvta_generic_to_shared(from)));
}
