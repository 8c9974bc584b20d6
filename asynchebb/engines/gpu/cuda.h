// The words that the engine's code is written in, as CUDA has them.
#define DEVICE static __device__ __forceinline__
#define APART static __device__ __noinline__  // compiled by itself, so that it takes no registers from others
#define UNROLL _Pragma("unroll")
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#define THREAD threadIdx.x
#define BLOCK blockIdx.x
#define KERNEL(name, arguments) extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) name(arguments)
extern __shared__ __align__(16) char shared_memory[];
#define SHARED_MEMORY shared_memory

// x, in a register: the compiler cannot know that it could compute it again whenever it is used.
DEVICE int kept(int x) { return __shfl_sync(~0u, x, threadIdx.x % 32); }
DEVICE void sync() { __syncthreads(); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE bool sync_or(int x) { return __syncthreads_or(x); }
DEVICE unsigned vote(bool x) { return __ballot_sync(~0u, x); }
DEVICE bool vote_any(bool x) { return __any_sync(~0u, x); }
DEVICE float reciprocal(float x) { return __frcp_rn(x); }
DEVICE double reciprocal(double x) { return 1 / x; }
DEVICE int popcount(unsigned x) { return __popc(x); }
template <typename T> DEVICE T shuffle(T x, int lane) { return __shfl_sync(~0u, x, lane); }
template <typename T> DEVICE T shuffle_xor(T x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE void add_to(long long* place, long long x) { atomicAdd((unsigned long long*)place, (unsigned long long)x); }
DEVICE void raise(int* place, int x) { atomicMax(place, x); }
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
