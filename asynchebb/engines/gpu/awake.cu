// Awake neurons apart: those that are active or may soon be, each with a row and a column of M̂ close by.
//
// A thread owns up to two of them, and has the first COLUMNS weights of their rows in its registers and the others in
// shared memory, so that a step is a sweep over its own rows, one barrier, and nothing else. The other neurons are
// silent. Far ones stay so up to the end of a spell, even if nothing inhibits them, and take one step with the summed
// drive then. The sleepers in between are looked after block by block: from a floor under each rate follows a bound on
// their drives, and those that it does not keep silent for the length of the block are woken beforehand. A block ends
// early when a rate falls below its floor. So what is computed is exact, and never undone.
//
//     slot q: row q of thread q % THREADS; column q, with its rate        sleeper 4 t + e: of thread t
#define OWN 2
#define SLEEPERS (4 * THREADS)
#define REST (SLOTS - COLUMNS)  // columns in shared memory
#define SPELL 250               // steps after which slots are given anew, to those who need one
#define LENGTHS 4               // of a block: 32, 16, 8 or 4 steps
#define LONGEST 32
#define FEW_WAKE 4              // a block is so long that no more than these have to be woken, if it can be
#define TOGETHER 4              // neurons that are woken at a time

struct Awake {  // in shared memory
    Shared shared;
    int id[SLOTS];                        // which neuron is in a slot
    alignas(16) real y[2][SLOTS];         // rates in the slots, before and after a step
    real sum[SLOTS], floor[SLOTS];        // rates added up since the block began; the floors under them
    real total[SLOTS];                    // rates added up since the spell began
    real a[SLOTS], scale[SLOTS], shift[SLOTS];
    Four u[THREADS], b[THREADS], s[THREADS];  // of the sleepers
    FourIds sleeper[THREADS];             // which neuron it is, or −1
    int unsafe[WARPS][LENGTHS];           // sleepers that might become active in a block of that length
    alignas(16) real row[TOGETHER][SLOTS];  // rows of those who wake
    Four rest[REST / 4 * SLOTS];          // four columns of a row: see `rest_of`
};
typedef Awake Memory;

// Columns 4 j to 4 j + 3 of row q, which are in shared memory.
DEVICE Four& rest_of(Awake& res, int j, int q) { return res.rest[(j - COLUMNS / 4) * SLOTS + q]; }

// Which neurons are far, which sleep and which are awake, from step k on: AWAKE are those that are active or whose gates
// may open before the last step; far are those that stay silent up to the end whatever happens. Gives that end; k if
// there are too many of them. New c's of the silent ones are left in NEW_C; those whose gates open at the hold's last
// step alone, as with a discrete schedule, are OPENED.
enum { FAR, SLEEPS, AWAKE };

APART int choose(Net& net, Awake& res, int k, int& awake, int& sleepers) {
    real *u = ROW(U), *y = ROW(Y), *a = ROW(A), *b = ROW(B);
    long long *c = COUNT(C), *new_c = COUNT(NEW_C);
    unsigned char *near = TRUTH(NEAR), *opened = TRUTH(OPENED);
    for (int end = k + SPELL < net.hold ? k + SPELL : (int)net.hold; end - k >= WORTHWHILE; end = k + (end - k) / 2) {
        bool ends_early = false;
        for EACH(i, net.n) {
            real still, new_u, new_y, unused;
            step(net.dynamics, u[i], 0, 0, 0, 0, still, unused, unused, unused);
            step(net.dynamics, u[i], 0, 0, (real)(end - k) * (b[i] > 0 ? b[i] : (real)0), 0, new_u, new_y, unused, unused);
            near[i] = net.all_near || y[i] != 0 || still != u[i] ? AWAKE : !(new_y <= 0) ? SLEEPS : FAR;
            opened[i] = 0;
            if (near[i] == AWAKE) continue;
            Silent silent = silent_gates(net, c[i], k, end);
            new_c[i] = silent.c;
            if (silent.opens == end || stays(net, a[i])) continue;
            if (silent.opens == net.hold - 1) {
                Terms terms = terms_of_update(net.rule, 0, a[i]);
                opened[i] = 1;
                ends_early |= odd_W(terms, ROW(SCALE)[i]) || odd_M(net.floor, terms, ROW(S)[i]);
            } else
                near[i] = AWAKE;
        }
        if (sync_or(ends_early)) {  // a row has to be rectified: all neurons take the last step
            end -= 1;
            for EACH(i, net.n)
                if (near[i] != AWAKE) new_c[i] = silent_gates(net, c[i], k, end).c, opened[i] = 0;
        }
        sleepers = list_where(res.shared, net.n, LIST(ACTIVE), [=](int i) { return near[i] == SLEEPS; });
        awake = list_where(res.shared, net.n, LIST(LISTED), [=](int i) { return near[i] == AWAKE; });
        if (awake > SLOTS) return k;
        if (sleepers <= SLEEPERS) return end;
    }
    return k;
}

// M̂ @ y for a thread's own rows, of which there are two or one; where they GROW, M̂ += gains yᵀ before that.
template <bool TWO, bool GROW>
DEVICE void sweep(Awake& res, const real* y, int slots, const real* gains, real (&m)[OWN][COLUMNS], real* sums) {
    const int ROWS = TWO ? 2 : 1;
    real part[OWN][4];  // sums that do not wait for each other
    UNROLL for (int o = 0; o < ROWS; o++) UNROLL for (int i = 0; i < 4; i++) part[o][i] = 0;
    UNROLL for (int first = 0; first < COLUMNS; first += 16)
        if (first < slots) {
            Four rates[4];
            UNROLL for (int j = 0; j < 4; j++) rates[j] = *(const Four*)(y + first + 4 * j);
            UNROLL for (int j = 0; j < 4; j++)
                UNROLL for (int i = 0; i < 4; i++)
                    UNROLL for (int o = 0; o < ROWS; o++) {
                        real& weight = m[o][first + 4 * j + i];
                        if (GROW) weight = plus(gains[o], rates[j].of[i], weight);
                        part[o][i] = plus(weight, rates[j].of[i], part[o][i]);
                    }
        }
    for (int first = COLUMNS / 4; 4 * first < slots; first += 2) {
        Four rates[2], weights[2][OWN];
        UNROLL for (int j = 0; j < 2; j++) {
            rates[j] = *(const Four*)(y + 4 * (first + j));
            UNROLL for (int o = 0; o < ROWS; o++) weights[j][o] = rest_of(res, first + j, THREAD + o * THREADS);
        }
        UNROLL for (int j = 0; j < 2; j++)
            UNROLL for (int o = 0; o < ROWS; o++) {
                UNROLL for (int i = 0; i < 4; i++) {
                    if (GROW) weights[j][o].of[i] = plus(gains[o], rates[j].of[i], weights[j][o].of[i]);
                    part[o][i] = plus(weights[j][o].of[i], rates[j].of[i], part[o][i]);
                }
                if (GROW) rest_of(res, first + j, THREAD + o * THREADS) = weights[j][o];
            }
    }
    UNROLL for (int o = 0; o < ROWS; o++) sums[o] = (part[o][0] + part[o][1]) + (part[o][2] + part[o][3]);
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`res.unsafe`, by warps); the bits of `found[e]` say for which lengths this thread's are among them.
DEVICE void look_after(Net& net, Awake& res, const real* dynamics, int slots, int sleepers, int steps, unsigned* found) {
    Four u = res.u[THREAD], b = res.b[THREAD], s = res.s[THREAD];
    FourIds id = res.sleeper[THREAD];
    real inhibition[4], least[4], unused;  // M̂ @ y, added up over the last block, and a bound on it in the next
    UNROLL for (int e = 0; e < 4; e++) inhibition[e] = least[e] = 0, found[e] = 0;
    if (WARP * 128 < sleepers) {
        const int AT_ONCE = 8;
        const Four* tile = (const Four*)net.tile + THREAD;
        for (int first = 0; first < slots; first += AT_ONCE) {
            Four weights[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                weights[j] = tile[(first + j < slots ? first + j : slots - 1) * THREADS];
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                real sum = first + j < slots ? res.sum[first + j] : (real)0;
                real floor = first + j < slots ? res.floor[first + j] : (real)0;
                UNROLL for (int e = 0; e < 4; e++) {
                    inhibition[e] = plus(weights[j].of[e], sum, inhibition[e]);
                    least[e] = plus(weights[j].of[e], floor, least[e]);
                }
            }
        }
        UNROLL for (int e = 0; e < 4; e++) {
            if (id.of[e] < 0) continue;
            real new_u, new_y, drive = b.of[e] - s.of[e] * least[e];
            if (steps) {
                step(dynamics, u.of[e], 0, 0, (real)steps * b.of[e] - s.of[e] * inhibition[e], 0, new_u, new_y, unused, unused);
                u.of[e] = new_u;
            }
            drive = drive <= 0 ? (real)0 : drive;
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                step(dynamics, u.of[e], 0, 0, (real)(LONGEST >> l) * drive, 0, new_u, new_y, unused, unused);
                found[e] |= (unsigned)!(new_y <= 0) << l;
            }
        }
        res.u[THREAD] = u;
    }
    UNROLL for (int l = 0; l < LENGTHS; l++) {
        int count = 0;
        UNROLL for (int e = 0; e < 4; e++) count += popcount(vote(found[e] >> l & 1));
        if (LANE == 0) res.unsafe[WARP][l] = count;
    }
}

// Write down what is asked for of this step.
APART void trace(Net& net, Awake& res, int k, long long t, int slots, unsigned opened, real first, real second) {
    int more_than_0 = 0, not_0 = 0;
    UNROLL for (int o = 0; o < OWN; o++) {
        real y = o == 0 ? first : second;
        int q = THREAD + o * THREADS;
        if (net.trace_y && q < slots) net.trace_y[t * net.n + res.id[q]] = y;
        if (net.trace_burst && q < slots) net.trace_burst[t * net.n + res.id[q]] = opened >> o & 1;
        more_than_0 += popcount(vote(y > 0)), not_0 += popcount(vote(y != 0));
    }
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&net.trace_active[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if it does not
// pay. `again` says that it may do so from there on; else all neurons take some steps.
APART int run_few(Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    int slots, sleepers, start = k, hold = net.hold, stride = net.stride, end = choose(net, res, k, slots, sleepers);
    again = false;
    if (end == k) return k;
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    real unused, x_x = net.x_x, floor = net.floor, *P = net.P;
    UNROLL for (int q = 0; q < DYNAMICS_CONSTANTS; q++) dynamics[q] = net.dynamics[q];
    UNROLL for (int q = 0; q < SCHEDULE_CONSTANTS; q++) schedule[q] = net.schedule[q];
    UNROLL for (int q = 0; q < RULE_CONSTANTS; q++) rule[q] = net.rule[q];
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;

    // What the slots and the sleepers begin with.
    for EACH(q, SLOTS) {
        int i = q < slots ? LIST(LISTED)[q] : -1;
        res.id[q] = i, res.y[0][q] = i < 0 ? (real)0 : ROW(Y)[i], res.y[1][q] = 0;
        res.sum[q] = res.total[q] = res.floor[q] = 0;
        if (i >= 0) res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    }
    UNROLL for (int e = 0; e < 4; e++) {
        int z = 4 * THREAD + e, i = z < sleepers ? LIST(ACTIVE)[z] : -1;
        res.sleeper[THREAD].of[e] = i;
        if (i < 0) i = 0;
        res.u[THREAD].of[e] = ROW(U)[i], res.b[THREAD].of[e] = ROW(B)[i], res.s[THREAD].of[e] = ROW(S)[i];
    }
    for EACH(q, REST / 4 * SLOTS) res.rest[q] = {0, 0, 0, 0};  // what was there need not be numbers
    if (THREAD == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0;
    sync();

    real m[OWN][COLUMNS], u[OWN], y[OWN], before[OWN], b[OWN], s[OWN], sum[OWN], total[OWN], lowest[OWN], gain[OWN];
    long long c[OWN];
    unsigned grown = 0;
    UNROLL for (int o = 0; o < OWN; o++) {
        int q = THREAD + o * THREADS, i = q < slots ? res.id[q] : 0;
        u[o] = ROW(U)[i], y[o] = before[o] = q < slots ? ROW(Y)[i] : (real)0, b[o] = ROW(B)[i], s[o] = ROW(S)[i];
        c[o] = COUNT(C)[i], sum[o] = total[o] = lowest[o] = gain[o] = 0;
        UNROLL for (int j = 0; j < COLUMNS; j++)
            m[o][j] = q < slots && j < slots ? P[(size_t)res.id[j] * stride + i] : (real)0;
        if (q < slots)
            for (int j = COLUMNS; j < slots; j++)
                rest_of(res, j / 4, q).of[j % 4] = P[(size_t)res.id[j] * stride + i];
    }
    if (WARP * 128 < sleepers)
        for (int q = 0; q < slots; q++) {
            const real* column = P + (size_t)res.id[q] * stride;
            FourIds id = res.sleeper[THREAD];
            Four weights;
            UNROLL for (int e = 0; e < 4; e++) weights.of[e] = id.of[e] < 0 ? (real)0 : column[id.of[e]];
            ((Four*)net.tile)[q * THREADS + THREAD] = weights;
        }

    real *now = res.y[0], *next = res.y[1];
    bool odd = false;
    int moved = k;
    while (true) {
        UNROLL for (int o = 0; o < OWN; o++) {
            int q = THREAD + o * THREADS;
            real fall = y[o] < before[o] ? y[o] - before[o] : (real)0;
            lowest[o] = (real)0.95 * y[o] + (real)(1.5 * LONGEST) * fall;
            lowest[o] = lowest[o] > 0 ? lowest[o] : (real)0;
            if (q < slots) res.sum[q] = sum[o], res.floor[q] = lowest[o];
            total[o] += sum[o], sum[o] = 0;
        }
        sync();
        unsigned found[4];
        look_after(net, res, dynamics, slots, sleepers, k - moved, found);
        moved = k;
        sync();
        if (k == end || odd) break;
        int length = 0, earlier = 0, waking = 0;
        for (length = 0; length < LENGTHS; length++) {
            earlier = waking = 0;
            for (int warp = 0; warp < WARPS; warp++) {
                if (warp == WARP) earlier = waking;
                waking += res.unsafe[warp][length];
            }
            if (waking <= FEW_WAKE || length == LENGTHS - 1) break;
        }
        if (slots + waking > SLOTS) break;
        if (waking) {
            UNROLL for (int e = 0; e < 4; e++) {
                unsigned lanes = vote(found[e] >> length & 1);
                if (found[e] >> length & 1) {
                    int i = res.sleeper[THREAD].of[e];
                    ROW(U)[i] = res.u[THREAD].of[e], TRUTH(NEAR)[i] = AWAKE, TRUTH(OPENED)[i] = 0;
                    res.id[slots + earlier + popcount(lanes & ((1u << LANE) - 1))] = i, res.sleeper[THREAD].of[e] = -1;
                }
                earlier += popcount(lanes);
            }
            sync();
            for (int first = slots; first < slots + waking; first += TOGETHER) {
                int last = first + TOGETHER < slots + waking ? first + TOGETHER : slots + waking;
                real column[TOGETHER][OWN];
                UNROLL for (int w = 0; w < TOGETHER; w++) {
                    int i = res.id[first + w < last ? first + w : last - 1];
                    UNROLL for (int o = 0; o < OWN; o++) {
                        int q = THREAD + o * THREADS, other = q < last ? res.id[q] : i;
                        column[w][o] = P[(size_t)i * stride + other];
                        if (q < SLOTS) res.row[w][q] = P[(size_t)other * stride + i];
                    }
                    Four weights;
                    FourIds id = res.sleeper[THREAD];
                    UNROLL for (int e = 0; e < 4; e++) weights.of[e] = P[(size_t)i * stride + (id.of[e] < 0 ? i : id.of[e])];
                    if (first + w < last) ((Four*)net.tile)[(first + w) * THREADS + THREAD] = weights;
                }
                sync();
                UNROLL for (int w = 0; w < TOGETHER; w++) {
                    int place = first + w;
                    if (place >= last) continue;
                    UNROLL for (int o = 0; o < OWN; o++) {
                        int q = THREAD + o * THREADS;
                        if (q < first) {
                            UNROLL for (int j = 0; j < COLUMNS; j++)
                                if (j == place) m[o][j] = column[w][o];
                            if (place >= COLUMNS) rest_of(res, place / 4, q).of[place % 4] = column[w][o];
                        }
                        if (q == place) {
                            int i = res.id[q];
                            u[o] = ROW(U)[i], y[o] = before[o] = 0, b[o] = ROW(B)[i], s[o] = ROW(S)[i];
                            c[o] = silent_gates(net, COUNT(C)[i], start, k).c;
                            res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
                            UNROLL for (int j = 0; j < COLUMNS; j++) m[o][j] = res.row[w][j];
                            for (int j = COLUMNS / 4; 4 * j < last; j++) rest_of(res, j, q) = *(const Four*)(res.row[w] + 4 * j);
                        }
                    }
                }
                sync();
            }
            slots += waking;
        }
        bool two = slots > THREADS + WARP * 32, any = slots > WARP * 32, attention = false;
        for (int left = LONGEST >> length; left && k < end && !attention; left--) {  // steps
            bool fell = false, strange = false;
            unsigned opened = 0;
            if (any) {
                // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
                real felt[OWN] = {0, 0};
                if (vote_any(gain[0] != 0 || gain[1] != 0)) {
                    if (two)
                        sweep<true, true>(res, now, slots, gain, m, felt);
                    else
                        sweep<false, true>(res, now, slots, gain, m, felt);
                    gain[0] = gain[1] = 0;
                } else if (two)
                    sweep<true, false>(res, now, slots, gain, m, felt);
                else
                    sweep<false, false>(res, now, slots, gain, m, felt);
                UNROLL for (int o = 0; o < OWN; o++) {
                    int q = THREAD + o * THREADS;
                    if (q >= slots) continue;
                    real beta, new_u, new_y;
                    long long new_c;
                    sum[o] += y[o], before[o] = y[o];
                    step(dynamics, u[o], 0, 0, b[o] - s[o] * felt[o], 0, new_u, new_y, unused, unused);
                    u[o] = new_u, y[o] = new_y, next[q] = new_y;
                    gate(schedule, new_y, 0, c[o], k, hold, beta, new_c);
                    c[o] = new_c, opened |= (unsigned)(beta != 0) << o;
                    fell |= !(new_y >= lowest[o]);
                }
                if (opened)
                    UNROLL for (int o = 0; o < OWN; o++)
                        if (opened >> o & 1) {
                            int q = THREAD + o * THREADS;
                            Terms terms = terms_of_update(rule, y[o], res.a[q]);
                            strange |= odd_W(terms, res.scale[q]) || odd_M(floor, terms, s[o]);
                        }
                if (traced) trace(net, res, k, hold_start + k, slots, opened, y[0], y[1]);
            }
            attention = sync_or(fell || strange);
            if (attention) odd = sync_or(strange);
            if (opened)
                // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself when it is read again
                UNROLL for (int o = 0; o < OWN; o++)
                    if (opened >> o & 1) {
                        int q = THREAD + o * THREADS;
                        if (odd) {
                            TRUTH(OPENED)[res.id[q]] = 1;  // left to `update`
                            continue;
                        }
                        Terms terms = terms_of_update(rule, y[o], res.a[q]);
                        res.a[q] = terms.a;
                        res.scale[q] *= terms.keep_w;
                        res.shift[q] = terms.keep_w * res.shift[q] + terms.gain;
                        b[o] = terms.keep_w * b[o] + terms.gain * x_x;
                        s[o] *= terms.keep_m;
                        gain[o] = terms.gain * reciprocal(s[o]);
                        grown |= (unsigned)(gain[o] != 0) << o;
                        if (net.trace_updates)
                            add_to(&net.trace_updates[hold_start + k],
                                   synapses_changed(net, terms, y[o], pixels, (int)res.shared.active[k % 3]));
                    }
            real* rates = now;
            now = next, next = rates;
            k++;
        }
    }
    if (vote_any(gain[0] != 0 || gain[1] != 0)) {
        real felt[OWN];
        if (slots > THREADS + WARP * 32)
            sweep<true, true>(res, now, slots, gain, m, felt);
        else
            sweep<false, true>(res, now, slots, gain, m, felt);
    }
    UNROLL for (int o = 0; o < OWN; o++) {
        int q = THREAD + o * THREADS;
        if (q >= slots) continue;
        int i = res.id[q];
        ROW(U)[i] = u[o], ROW(Y)[i] = y[o], ROW(B)[i] = b[o], ROW(S)[i] = s[o], COUNT(C)[i] = c[o];
        ROW(A)[i] = res.a[q], ROW(SCALE)[i] = res.scale[q], ROW(SHIFT)[i] = res.shift[q], res.total[q] = total[o];
        if ((grown >> o & 1) == 0) continue;
        TRUTH(GROWN)[i] = 1;
        UNROLL for (int j = 0; j < COLUMNS; j++)
            if (j < slots) P[(size_t)res.id[j] * stride + i] = m[o][j];
        for (int j = COLUMNS; j < slots; j++)
            P[(size_t)res.id[j] * stride + i] = rest_of(res, j / 4, q).of[j % 4];
    }
    UNROLL for (int e = 0; e < 4; e++) {
        int i = res.sleeper[THREAD].of[e];
        if (i >= 0) ROW(U)[i] = res.u[THREAD].of[e], close_silent(net, i, start, k, end, odd, hold_start + k - 1);
    }
    sync();
    unsigned char* near = TRUTH(NEAR);
    sum_columns(
        net, res.id, slots, [&](int q) { return res.total[q]; }, [=](int i) { return near[i] == FAR; },
        [&](int i, real sum) {
            move_silent(net, i, k - start, sum);
            close_silent(net, i, start, k, end, odd, hold_start + k - 1);
        });
    sync();
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        int active = list_active(net, res.shared);
        update(net, res.shared, x, pixels, active, hold_start + k - 1);
    }
    again = !odd && k > start && k < hold - 1;
    return k;
}
