// What all of the engine's code works with: a network's arrays, lists of neurons, and passes over W and M.
//
// One thread block runs one network, or several together run a large one. M is kept by presynaptic column: m_ij is at
// P[j * stride + i]. During a hold M = diag(s) M̂ and W is to become scale_i w_i + shift_i x; at its end both are as they
// should be (`fold.cu`), so that a run may be cut at any stimulus and goes on to the same bits. All sums are taken in an
// order that depends on the network's state alone. The equations (`step`, `gate`, `rate`, `leak_w`, `leak_m`) are
// translated from Python.

#define WORTHWHILE 16  // steps for which it pays to run few neurons apart
#define SHORTEST 4     // after which it is tried again
#define SMALLEST_SCALE ((real)1e-9)  // a row whose scale or s has come down to this is brought back to 1
#define ROW(name) row_of_numbers(net, name)
#define COUNT(name) row_of_counts(net, name)
#define LIST(name) (global(net.lists) + (name) * net.stride)
#define TRUTH(name) row_of_truths(net, name)
#define TEAM_ROW(team) (global(net.numbers) + (INHIBITION + (team)) * net.stride)
#define EACH(i, count) (int i = (int)THREAD; i < (int)(count); i += THREADS)  // a block's threads share the work
#define WARP ((int)(THREAD / 32))
#define LANE ((int)(THREAD % 32))
#define WARPS (THREADS / 32)

// Per neuron: u, y and a; b = Wx; what its rows of M and W are still to be multiplied by, and how often x is to be added; h;
// by how much its rows grow at an update; its y before the last step, or what a spike adds to it; the mean of its y over the
// second half of a presentation; the sum of its y over all of it; the inhibition M̂ y, and what other teams add to it
// (`lateral`).
enum {
    U, Y, A, B, S, SCALE, SHIFT, H, GAIN_W, GAIN_M, BEFORE, MEAN, ALL_RATES, INHIBITION,
    NUMBER_ROWS = INHIBITION + 4
};
enum { C, SPIKES, COUNT_ROWS };                       // steps since the last update; spikes in the window
// Neurons with y ≠ 0; others; pixels with x ≠ 0; see `fold.cu`; since which step a neuron sleeps (`asleep.cu`).
enum { ACTIVE, LISTED, PIXELS, FRESH_W, SINCE, LIST_ROWS };
enum { GROWN, OPENED, TRUTH_ROWS, FRESH = TRUTH_ROWS };  // has the row of M grown; is the gate open; see `turns.cu`

enum {  // SPENT
    ON_WX, ON_CHOOSING, ON_LOADING, ON_SLEEPERS, ON_WAKING, ON_STEPS, ON_STORING, ON_CLOSING, ON_ALL, ON_FOLDING, ON_BEGINNING
};

#define AT_HAND_PIXELS (COLUMNS ? 256 : 0)
#define ROUNDS (WARPS > 16 ? 1 : 4)  // in which a block counts at a time

struct Shared {  // of a block
    Net net;  // a copy
    int part[ROUNDS * WARPS], pixels;  // so many are not 0
    long long active[3];  // neurons with y ≠ 0 at this step, the one before and the next
#if FEW
    unsigned char fresh[NEURONS + AT_HAND_PIXELS];  // of columns of M, and of W: see `fold.cu`
#endif
#if COLUMNS  // there is room for what is needed most
    int pixels_at_hand[AT_HAND_PIXELS];
    real shown[AT_HAND_PIXELS];
    alignas(16) real numbers[H][NEURONS];
    long long counts[SPIKES][NEURONS];
    unsigned char truths[TRUTH_ROWS][NEURONS];
#endif
};

#if COLUMNS
#define AT_HAND (*(Shared*)SHARED_MEMORY)
DEVICE real* row_of_numbers(Net& net, int name) {
    return name < H ? AT_HAND.numbers[name] : global(net.numbers) + name * net.stride;
}
DEVICE long long* row_of_counts(Net& net, int name) {
    return name < SPIKES ? AT_HAND.counts[name] : global(net.counts) + name * net.stride;
}
DEVICE unsigned char* row_of_truths(Net& net, int name) { return AT_HAND.truths[name]; }

// The pixels that are not 0, and what is shown there. Without branches: many are asked for at once. It is known whether ALL of
// a network's pixels are at hand.
template <bool ALL> DEVICE int pixel(Net& net, int p) {
    int found = AT_HAND.pixels_at_hand[ALL || p < AT_HAND_PIXELS ? p : 0];
    if (!ALL) read_global_if(p >= AT_HAND_PIXELS, &found, LIST(PIXELS) + p);
    return found;
}
template <bool ALL> DEVICE real shown_at(Net& net, const real* x, int p) {
    real found = AT_HAND.shown[ALL || p < AT_HAND_PIXELS ? p : 0];
    if (!ALL) read_global_if(p >= AT_HAND_PIXELS, &found, global(x) + pixel<ALL>(net, p));
    return found;
}
DEVICE void is_shown(Net& net, int p, int pixel, real x) {
    if (p < AT_HAND_PIXELS)
        AT_HAND.pixels_at_hand[p] = pixel, AT_HAND.shown[p] = x;
    else
        LIST(PIXELS)[p] = pixel;
}

// Take them over, or give them BACK.
template <bool BACK> DEVICE void turn_numbers(Net& net) {
    for EACH(i, net.n) {
        for (int name = U; name <= A; name++) {
            real &there = global(net.numbers)[name * net.stride + i], &here = AT_HAND.numbers[name][i];
            (BACK ? there : here) = BACK ? here : there;
        }
        long long &there = global(net.counts)[C * net.stride + i], &here = AT_HAND.counts[C][i];
        (BACK ? there : here) = BACK ? here : there;
    }
    sync();
}
#else
DEVICE real* row_of_numbers(Net& net, int name) { return global(net.numbers) + name * net.stride; }
DEVICE long long* row_of_counts(Net& net, int name) { return global(net.counts) + name * net.stride; }
DEVICE unsigned char* row_of_truths(Net& net, int name) { return global(net.truths) + name * net.stride; }
template <bool BACK> DEVICE void turn_numbers(Net& net) {}
template <bool ALL> DEVICE int pixel(Net& net, int p) { return LIST(PIXELS)[p]; }
template <bool ALL> DEVICE real shown_at(Net& net, const real* x, int p) { return x[LIST(PIXELS)[p]]; }
DEVICE void is_shown(Net& net, int p, int pixel, real x) { LIST(PIXELS)[p] = pixel; }
#endif

struct alignas(16) Four { real of[4]; };
struct alignas(16) FourIds { int of[4]; };

DEVICE Four at_once(const Four* four) {  // from shared memory; several of these are asked for together
    Four found;
    read_shared(found.of, four->of);
    return found;
}

DEVICE FourIds at_once(const FourIds* four) {
    FourIds found;
    read_shared(found.of, four->of);
    return found;
}

DEVICE Four streamed(const Four* four) {
    Four found;
    read_streamed(found.of, four->of);
    return found;
}

DEVICE real one_at_once(const real* number) {
    real found;
    read_one(&found, number);
    return found;
}

// W by rows; where few neurons are run apart, by pixels.
#if FEW
#define WEIGHTS_OF(i) (global(net.V) + (i))
#define PIXELS_APART ((size_t)net.stride)
#else
#define WEIGHTS_OF(i) (global(net.W) + (size_t)(i) * net.m)
#define PIXELS_APART ((size_t)1)
#endif

DEVICE real plus(real a, real b, real c) { return MULTIPLY_ADD(a, b, c); }  // a b + c

// put(i, place) for the i < count for which the condition holds, in ascending order. Gives how many there are. The block
// then has to meet.
template <typename Condition, typename Put>
DEVICE int number_where(Shared& shared, int count, Condition condition, Put put) {
    int found = 0;
    ROLLED for (int start = 0; start < count; start += ROUNDS * THREADS) {
        int rounds = (count - start + THREADS - 1) / THREADS;
        rounds = rounds < ROUNDS ? rounds : ROUNDS;
        unsigned is_in = 0;  // this thread's of each round
        ROLLED for (int round = 0; round < rounds; round++) {
            int i = start + round * THREADS + (int)THREAD;
            bool holds = i < count && condition(i);
            unsigned lanes = vote(holds);
            is_in |= (unsigned)holds << round;
            if (LANE == 0) shared.part[round * WARPS + WARP] = popcount(lanes);
        }
        sync();
        ROLLED for (int round = 0; round < rounds; round++) {
            int before = 0, all = 0;
            const int lanes_used = WARPS > 16 ? 32 : 1;  // where there are many warps, a warp's lanes add up their numbers
            for (int warp = lanes_used > 1 ? LANE : 0; warp < WARPS; warp += lanes_used) {
                int of_warp = shared.part[round * WARPS + warp];
                all += of_warp, before += warp < WARP ? of_warp : 0;
            }
            for (int apart = lanes_used / 2; apart; apart /= 2)
                all += shuffle_xor(all, apart), before += shuffle_xor(before, apart);
            bool holds = is_in >> round & 1;
            unsigned lanes = vote(holds);
            if (holds) put(start + round * THREADS + (int)THREAD, found + before + popcount(lanes & ((1u << LANE) - 1)));
            found += all;
        }
        if (start + ROUNDS * THREADS < count) sync();
    }
    return found;
}

// List them.
template <typename Condition> DEVICE int list_where(Shared& shared, int count, int* list, Condition condition) {
    int found = number_where(shared, count, condition, [=](int i, int place) { list[place] = i; });
    sync();
    return found;
}

DEVICE int list_active(Net& net, Shared& shared) {
    real* y = ROW(Y);
    return list_where(shared, net.n, LIST(ACTIVE), [=](int i) { return y[i] != 0; });
}

template <typename T> DEVICE T sum_of_warp(T x) {
    for (int apart = 16; apart; apart /= 2) x += shuffle_xor(x, apart);
    return x;
}

// Σ_j m̂_ij y_j over the listed j, for the rows i, i + THREADS, … that are wanted; many weights are on their way at once.
template <typename Rate, typename Wanted, typename Take>
DEVICE void sum_columns(Net& net, const int* list, int count, Rate rate, Wanted wanted, Take take) {
    const int TOGETHER = THREADS < 512 ? 4 : 1, AT_ONCE = THREADS < 512 ? 8 : 16;
    int n = net.n, stride = net.stride;
    for (int first = (int)THREAD; first < n; first += TOGETHER * THREADS) {
        real sum[TOGETHER];
        bool is_wanted[TOGETHER];
        UNROLL for (int r = 0; r < TOGETHER; r++)
            sum[r] = 0, is_wanted[r] = first + r * THREADS < n && wanted(first + r * THREADS);
        for (int q = 0; q < count; q += AT_ONCE) {
            real weight[TOGETHER][AT_ONCE];
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                const real* P = global(net.P) + (size_t)list[q + e < count ? q + e : count - 1] * stride + first;
                UNROLL for (int r = 0; r < TOGETHER; r++) weight[r][e] = is_wanted[r] ? P[r * THREADS] : (real)0;
            }
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                real y = q + e < count ? rate(q + e) : (real)0;
                UNROLL for (int r = 0; r < TOGETHER; r++) sum[r] = plus(weight[r][e], y, sum[r]);
            }
        }
        UNROLL for (int r = 0; r < TOGETHER; r++)
            if (is_wanted[r]) take(first + r * THREADS, sum[r]);
    }
}

// inhibition = M̂ @ y over the listed columns, added to `before` times what it was. Threads have four rows each, and
// where there are enough of them, teams of threads share the columns; but not of networks that several blocks may run,
// since sums must not depend on how many do. What the other teams have is left to `add_teams`. Where rows are to GROW,
// which they can only in teams, M̂ += gains yᵀ before that.
DEVICE int teams(Net& net) {
    int found = net.n > LARGE ? 0 : THREADS / (((int)net.n + 127) / 128 * 32);
    return found < FEW ? FEW : found < 4 ? found : 4;
}

#if FEW
#define AT_MOST_KEPT 96

// What shared memory has room for while all neurons are run.
struct Acting {
    // Columns that act: where each begins in P, and the rate. Those past the last one count for nothing.
    FourIds* places;
    Four* rates;
    // Whole columns of M̂, kept from step to step: whose they are, of `room` that fit; and is a neuron's among them?
    real* columns;
    int room, pitch, &kept, *owners;
    Four* kept_rates;
    unsigned char* is_kept;
    Shared& shared;
};

DEVICE Acting acting();

DEVICE void forget_columns(Net& net) {
    Acting acts = acting();
    if (COLUMNS && !sync_or(acts.kept)) return;
    for EACH(i, net.n) acts.is_kept[i] = 0;
    if (THREAD == 0) acts.kept = 0;
    sync();
}

// Keep the columns of the neurons with the highest rates, unless some are kept or few neurons are active: these will be
// active for longest.
OUTLINED void keep_columns(Net& net, int active) {
    const int AT_ONCE = 8;
    Acting acts = acting();
    if (acts.kept || active < acts.room) return;
    const real* y = ROW(Y);
    real low = 0, high = 1;
    auto count_above = [&](real rate) {
        int found = number_where(acts.shared, net.n, [=](int i) { return y[i] > rate; }, [](int, int) {});
        sync();
        return found;
    };
    while (count_above(high) > acts.room) low = high, high *= 2;
    ROLLED for (int times = 0; times < 12; times++) {
        real rate = (low + high) / 2;
        (count_above(rate) > acts.room ? low : high) = rate;
    }
    int kept = number_where(
        acts.shared, net.n, [=](int i) { return y[i] > high; },
        [&](int i, int place) { acts.owners[place] = i, acts.is_kept[i] = 1; });
    if (THREAD == 0) acts.kept = kept;
    sync();
    int n_4 = ((int)net.n + 3) / 4;
    ROLLED for (int first = THREAD; first < kept * n_4; first += AT_ONCE * THREADS) {
        Four weights[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            int q = first + j * THREADS < kept * n_4 ? first + j * THREADS : first;
            weights[j] = streamed((const Four*)(global(net.P) + (size_t)acts.owners[q / n_4] * net.stride) + q % n_4);
        }
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            int q = first + j * THREADS;
            if (q < kept * n_4) *((Four*)(acts.columns + q / n_4 * acts.pitch) + q % n_4) = weights[j];
        }
    }
}

DEVICE void lateral(
    Net& net, const int* list, int count, const real* y, real* inhibition, real before, bool grow = false) {
    const int AT_ONCE = 16, KEPT_AT_ONCE = 4;
    int sharing = teams(net), stride = net.stride;
    Acting acts = acting();
    int kept = acts.kept;
    int others = number_where(
        acts.shared, count, [&](int q) { return !acts.is_kept[list[q]]; },
        [&](int q, int place) { ((int*)acts.places)[place] = list[q] * stride, ((real*)acts.rates)[place] = y[list[q]]; });
    for EACH(q, AT_ONCE) ((int*)acts.places)[others + q] = 0, ((real*)acts.rates)[others + q] = 0;
    for EACH(q, kept + KEPT_AT_ONCE) ((real*)acts.kept_rates)[q] = q < kept ? y[acts.owners[q]] : (real)0;
    sync();
    int in_team = ((int)net.n + 127) / 128 * 32, team = THREAD / in_team, first_row = THREAD % in_team * 4;
    if (team >= sharing) return;
    ROLLED for (; first_row < net.n; first_row += THREADS * 4) {  // once, but where threads are few
        Four sum = {0, 0, 0, 0}, gains = {0, 0, 0, 0};
        if (grow) gains = *(const Four*)(ROW(GAIN_M) + first_row);
        bool grows = gains.of[0] != 0 || gains.of[1] != 0 || gains.of[2] != 0 || gains.of[3] != 0;
        real *P = global(net.P) + first_row, *columns = acts.columns + first_row;
        auto add = [&](Four& weights, real rate) {
            UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights.of[e], rate, sum.of[e]);
        };
        auto grown = [&](Four& weights, real rate) {
            UNROLL for (int e = 0; e < 4; e++) weights.of[e] = plus(gains.of[e], rate, weights.of[e]);
        };
        ROLLED for (int first = team * AT_ONCE; first < others; first += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            FourIds places[AT_ONCE / 4];
            UNROLL for (int j = 0; j < AT_ONCE / 4; j++) places[j] = at_once(acts.places + first / 4 + j);
            UNROLL for (int j = 0; j < AT_ONCE; j++) weights[j] = streamed((const Four*)(P + places[j / 4].of[j % 4]));
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                real rate = acts.rates[(first + j) / 4].of[j % 4];
                if (grows && first + j < others) {
                    grown(weights[j], rate);
                    *(Four*)(P + places[j / 4].of[j % 4]) = weights[j];
                }
                add(weights[j], rate);
            }
        }
        ROLLED for (int first = team * KEPT_AT_ONCE; first < kept; first += KEPT_AT_ONCE * sharing) {
            Four weights[KEPT_AT_ONCE], rates = at_once(acts.kept_rates + first / 4);
            UNROLL for (int j = 0; j < KEPT_AT_ONCE; j++)
                weights[j] = at_once((const Four*)(columns + (first + j < kept ? first + j : first) * acts.pitch));
            UNROLL for (int j = 0; j < KEPT_AT_ONCE; j++) {
                if (grows && first + j < kept && rates.of[j] != 0) {
                    grown(weights[j], rates.of[j]);
                    *(Four*)(columns + (first + j) * acts.pitch) = weights[j];
                    *(Four*)(P + acts.owners[first + j] * stride) = weights[j];
                }
                add(weights[j], rates.of[j]);
            }
        }
        Four* into = (Four*)((team ? TEAM_ROW(team) : inhibition) + first_row);
        if (team == 0 && before != 0)
            UNROLL for (int e = 0; e < 4; e++) sum.of[e] += before * into->of[e];
        *into = sum;
    }
}
#else
DEVICE void keep_columns(Net& net, int active) {}
DEVICE void forget_columns(Net& net) {}
DEVICE void lateral(
    Net& net, const int* list, int count, const real* y, real* inhibition, real before, bool grow = false) {
    int sharing = teams(net), stride = net.stride;
    if (sharing == 0) {
        sum_columns(
            net, list, count, [=](int q) { return y[list[q]]; }, [](int i) { return true; },
            [=](int i, real sum) { inhibition[i] = before == 0 ? sum : before * inhibition[i] + sum; });
        return;
    }
    const int AT_ONCE = 8;
    int in_team = ((int)net.n + 127) / 128 * 32, team = THREAD / in_team, first_row = THREAD % in_team * 4;
    if (team >= sharing || first_row >= net.n) return;
    Four sum = {0, 0, 0, 0}, gains = {0, 0, 0, 0};
    if (grow) gains = *(const Four*)(ROW(GAIN_M) + first_row);
    bool grows = gains.of[0] != 0 || gains.of[1] != 0 || gains.of[2] != 0 || gains.of[3] != 0;
    ROLLED for (int first = team; first < count; first += AT_ONCE * sharing) {
        Four weights[AT_ONCE];
        real rates[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            int q = list[first + j * sharing < count ? first + j * sharing : first];
            weights[j] = *(const Four*)(global(net.P) + (size_t)q * stride + first_row);
            rates[j] = first + j * sharing < count ? y[q] : (real)0;
        }
        if (grows)
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (first + j * sharing < count) {
                    UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] = plus(gains.of[e], rates[j], weights[j].of[e]);
                    *(Four*)(global(net.P) + (size_t)list[first + j * sharing] * stride + first_row) = weights[j];
                }
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights[j].of[e], rates[j], sum.of[e]);
    }
    Four* into = (Four*)((team ? TEAM_ROW(team) : inhibition) + first_row);
    if (team == 0 && before != 0)
        UNROLL for (int e = 0; e < 4; e++) sum.of[e] += before * into->of[e];
    *into = sum;
}
#endif

DEVICE real add_teams(Net& net, int i, int sharing) {
    real sum = ROW(INHIBITION)[i];
    for (int team = 1; team < sharing; team++) sum += TEAM_ROW(team)[i];
    return sum;
}

// Of a neuron that is silent from step k up to step `end`: the step at which its gate first opens (or `end`), and its c
// at the end.
struct Silent {
    int opens;
    long long c;
};

DEVICE Silent silent_gates(Net& net, long long c, int k, int end) {
    Silent found = {end, c};
    if (k < net.quiet) {  // up to there the gate is closed and c counts on, whatever it is
        int reached = end < net.quiet ? end : (int)net.quiet;
        found.c += reached - k;
        k = reached;
    }
    if (k < end && k >= net.open_from) {  // from there on it is open, and c is known
        found = {k, net.open_c};
        k = end;
    }
    for (; k < end; k++) {
        real beta;
        long long next;
        gate(net.schedule, 0, 0, found.c, k, net.hold, beta, next);
        found.c = next;
        if (beta != 0 && found.opens == end) found.opens = k;
    }
    return found;
}

// Does an update leave a silent neuron as it is?
DEVICE bool stays(Net& net, real a) {
    real eta, new_a, lambda_w, lambda_m;
    rate(net.rule, 0, a, eta, new_a);
    leak_w(net.rule, 0, lambda_w);
    leak_m(net.rule, 0, lambda_m);
    return net.floor == 0 && new_a == a && lambda_w == 0 && lambda_m == 0;
}

// How an update changes a neuron's rows: w_i ← keep_w w_i + gain x, m_i ← keep_m m_i + gain y − eta φ; its a; and
// whether its leaks are 0, which the number of synapses that change depends on.
struct Terms {
    real eta, keep_w, keep_m, gain, a;
    bool leaks_w, leaks_m;
};

DEVICE Terms terms_of_update(const real* constants, real y, real a) {
    Terms terms;
    real lambda_w, lambda_m;
    rate(constants, y, a, terms.eta, terms.a);
    leak_w(constants, y, lambda_w);
    leak_m(constants, y, lambda_m);
    terms.keep_w = 1 - terms.eta * lambda_w;
    terms.keep_m = 1 - terms.eta * lambda_m;
    terms.gain = terms.eta * y;
    terms.leaks_w = lambda_w != 0;
    terms.leaks_m = lambda_m != 0;
    return terms;
}

// Must such rows be rectified, or their scales be brought back to 1? Then an update takes the long way.
DEVICE bool odd_W(const Terms& terms, real scale) {
    return !(terms.keep_w >= 0 && terms.gain >= 0 && scale * terms.keep_w > SMALLEST_SCALE);
}

DEVICE bool odd_M(real floor, const Terms& terms, real s) {
    return floor != 0 || !(terms.keep_m >= 0 && terms.gain >= 0 && s * terms.keep_m > SMALLEST_SCALE);
}

// Synapses that an update changes: those with a Hebbian product, a leak or a floor.
DEVICE long long synapses_changed(Net& net, const Terms& terms, real y, int pixels, int active) {
    long long changed = terms.leaks_w ? net.m : (y != 0 ? pixels : 0);
    return changed + (terms.leaks_m || net.floor != 0 ? net.n : (y != 0 ? active : 0));
}

// A neuron that was silent from step `start` up to k: its c; and its leaks, if it is OPENED, unless that is left to
// `update`, since a row is odd.
DEVICE void close_silent(Net& net, int i, int start, int k, bool odd, long long t) {
    COUNT(C)[i] = silent_gates(net, COUNT(C)[i], start, k).c;
    unsigned char& opened = TRUTH(OPENED)[i];
    if (opened && k == net.hold && !odd) {
        Terms terms = terms_of_update(net.rule, 0, ROW(A)[i]);
        ROW(A)[i] = terms.a, ROW(SCALE)[i] *= terms.keep_w, ROW(SHIFT)[i] *= terms.keep_w;
        ROW(B)[i] *= terms.keep_w, ROW(S)[i] *= terms.keep_m;
        if (net.trace_updates) add_to(&global(net.trace_updates)[t], synapses_changed(net, terms, 0, 0, 0));
    }
    if (k < net.hold || !odd) opened = 0;
}
