// The words that the gpu engine's code is written in, on a CPU: a block's threads are fibres of one thread, which take
// turns wherever they wait for each other; and so are those of a cluster of blocks. For tests without a GPU.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#define DEVICE static inline
#define OUTLINED static
#define MEMBER inline
#define SHARED_MEMORY emulated::shared_memory
#define UNROLL
#define ROLLED
#define UNLIKE(number)
#define hidden(x) ((int)(x))
#define together()
#define to_real(x) ((real)(x))
#define SPENT(part)
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define THREAD ((unsigned)emulated::thread % THREADS)
#define RANK (emulated::thread / THREADS)
#define BLOCK emulated::block
#define BLOCKS_HERE emulated::blocks
#define __shared__ static
#define MEMORY(nets) (emulated::shared_memory + RANK * emulated::shared_size)
#define KERNEL(name, ...) static void name(__VA_ARGS__)
#define SIZE(name, size) extern "C" int name = size

namespace emulated {
const int STACK = 1 << 16;
const int ALL_THREADS = CLUSTER * THREADS;
static int thread, block, blocks, shared_size;
static char* shared_memory;  // of each block of a cluster, one after the other
static char* stacks;
static bool finished[ALL_THREADS];
static void (*body)();

#if defined(__x86_64__)
// swapcontext asks the operating system for the signal mask each time, which takes a hundred times as long.
extern "C" void emulated_switch(void** from, void* to);
asm(".globl emulated_switch\nemulated_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
static void *scheduler_stack, *fibre_stack[ALL_THREADS];
static void wait() { emulated_switch(&fibre_stack[thread], scheduler_stack); }
static void start() {
    body();
    finished[thread] = true;
    wait();
}
static void prepare(int t) {
    void** top = (void**)(((uintptr_t)(stacks + (size_t)(t + 1) * STACK)) & ~(uintptr_t)63) - 1;
    *--top = (void*)start;
    for (int r = 0; r < 6; r++) *--top = nullptr;
    fibre_stack[t] = top;
}
static void go_on() { emulated_switch(&scheduler_stack, fibre_stack[thread]); }
#else
static ucontext_t scheduler, fibre[ALL_THREADS];
static void wait() { swapcontext(&fibre[thread], &scheduler); }
static void start() {
    body();
    finished[thread] = true;
    wait();
}
static void prepare(int t) {
    getcontext(&fibre[t]);
    fibre[t].uc_stack.ss_sp = stacks + (size_t)t * STACK, fibre[t].uc_stack.ss_size = STACK;
    makecontext(&fibre[t], start, 0);
}
static void go_on() { swapcontext(&scheduler, &fibre[thread]); }
#endif

static unsigned random(unsigned below) {
    static unsigned long long number = 1;
    number = number * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(number >> 33) % below;
}

static void run(int of_block, int shared_bytes, void (*of_body)()) {
    block = of_block, body = of_body;
    stacks = (char*)malloc((size_t)ALL_THREADS * STACK);
    shared_size = (shared_bytes + 63) / 64 * 64;
    shared_memory = (char*)aligned_alloc(64, (size_t)CLUSTER * shared_size);
    memset(shared_memory, 0xFF, (size_t)CLUSTER * shared_size);  // not numbers
    for (int t = 0; t < ALL_THREADS; t++) finished[t] = false, prepare(t);
    for (bool left = true; left;) {
        left = false;
#if IN_ANY_ORDER  // some go on as far as they can before the others do
        for (int t = 0; t < ALL_THREADS; t++) left |= !finished[t];
        int together = random(3) == 0 ? 1 : random(2) ? 32 : THREADS, first = random(ALL_THREADS / together) * together;
        for (int times = random(300); times >= 0; times--)
            for (thread = first; thread < first + together; thread++)
                if (!finished[thread]) go_on();
#else
        for (thread = 0; thread < ALL_THREADS; thread++)
            if (!finished[thread]) go_on(), left = true;
#endif
    }
    free(stacks), free(shared_memory);
}

struct Meeting {  // of a warp's threads, a block's or a cluster's
    int arrived, number;
    double said[2][ALL_THREADS];  // in turn: those who go on first may already say the next thing
};
static Meeting of_cluster, of_block[CLUSTER], of_some, of_warp[ALL_THREADS / 32];

// Say x, wait for the others, and hear what they said.
static double* meet(Meeting& meeting, int size, double x) {
    int number = meeting.number;
    double* said = meeting.said[number % 2];
    said[thread % size] = x;
    if (++meeting.arrived == size) meeting.arrived = 0, meeting.number++;
    while (meeting.number == number) wait();
    return said;
}
static double* block_says(double x) { return meet(of_block[thread / THREADS], THREADS, x); }
static void cluster_meets() { meet(of_cluster, ALL_THREADS, 0); }
static double* warp_says(double x) { return meet(of_warp[thread / 32], 32, x); }
}  // namespace emulated

template <typename T> DEVICE T* global(T* place) { return place; }
DEVICE void begin(char* at) {}
DEVICE void sync() { emulated::block_says(0); }
DEVICE void sync_first(int warps) { emulated::meet(emulated::of_some, 32 * warps, 0); }
DEVICE void sync_warp() { emulated::warp_says(0); }
DEVICE bool sync_or(int x) {
    double* said = emulated::block_says(x != 0);
    for (int t = 0; t < THREADS; t++)
        if (said[t]) return true;
    return false;
}
DEVICE unsigned vote(bool x) {
    double* said = emulated::warp_says(x);
    unsigned found = 0;
    for (int lane = 0; lane < 32; lane++) found |= (unsigned)(said[lane] != 0) << lane;
    return found;
}
DEVICE bool vote_any(bool x) { return vote(x) != 0; }
template <typename T> DEVICE T reciprocal(T x) { return 1 / x; }
DEVICE int popcount(unsigned x) { return __builtin_popcount(x); }
template <typename T> DEVICE T shuffle(T x, int lane) { return (T)emulated::warp_says(x)[lane]; }
template <typename T> DEVICE T shuffle_xor(T x, int mask) { return shuffle(x, (THREAD % 32) ^ mask); }
DEVICE bool replace(volatile int* place, int, int by) { return *place = by, true; }
DEVICE int add_one(volatile int* place) { return (*place)++; }
DEVICE void fence() {}
DEVICE void add_to(long long* place, long long x) { *place += x; }

template <typename T> DEVICE void read_global_if(bool condition, T* to, const T* from) {
    if (condition) *to = *from;
}
template <typename T> DEVICE void multiply_if_less(unsigned a, unsigned b, T* x, const T* by) {
    for (int e = 0; e < 4; e++)
        if (a < b) x[e] *= by[e];
}
template <typename T> DEVICE void read_streamed(T* to, const T* from) { memcpy(to, from, 4 * sizeof(T)); }
template <typename T> DEVICE void read_shared(T* to, const T* from) { memcpy(to, from, 4 * sizeof(T)); }
template <typename T> DEVICE void read_one(T* to, const T* from) { *to = *from; }
template <typename T> DEVICE void read_shared_if(bool condition, T* to, const T* from) {
    if (condition) read_shared(to, from);
}

DEVICE void write_shared_if(bool condition, real* to, real x) {
    if (condition) *to = x;
}

typedef char* Elsewhere;
#define TURN_BITS 3  // so that they soon come again
DEVICE void meet() { emulated::cluster_meets(); }
DEVICE Elsewhere place_in(int rank, const void* place) { return (char*)place + (rank - RANK) * emulated::shared_size; }
DEVICE void give_way() { emulated::wait(); }
DEVICE unsigned window() { return 0; }
template <int AFTER> DEVICE void send_if(bool condition, unsigned, Elsewhere place, unsigned first, unsigned second) {
#if IN_ANY_ORDER
    while (emulated::random(4) == 0) emulated::wait();
#endif
    if (condition) ((unsigned*)(place + AFTER))[0] = first, ((unsigned*)(place + AFTER))[1] = second;
}
DEVICE void read_word(unsigned& first, unsigned& second, const void* from) {
    first = ((const unsigned*)from)[0], second = ((const unsigned*)from)[1];
}
