// Neurons that sleep: silent ones that need not be run, since they stay silent.
//
// They are looked after between blocks of steps. From a floor under each rate follows a bound on the drive of each sleeper,
// and those that it does not keep silent for the length of the block are woken beforehand. The block ends when a rate falls
// below its floor, so that what is computed is exact, and never undone. Awake neurons that are silent, and will be for a
// while, fall asleep again.

// The lengths of a block for which a sleeper might become active, if it feels at least so much; or if it is SHORT.
DEVICE unsigned unsafe_for(const real* dynamics, real u, real b, real felt, real felt_if_short) {
    unsigned unsafe = 0;
    UNROLL for (int l = 0; l < LENGTHS; l++) {
        real drive = b - (l < SHORT ? felt : felt_if_short);
        drive = drive <= 0 ? (real)0 : drive;
        unsafe |= (unsigned)might_wake(dynamics, u, (real)(LONGEST >> l) * drive) << l;
    }
    return unsafe;
}

// How many there are, by length.
DEVICE void count_unsafe(Counts& counts, unsigned unsafe) {
    UNROLL for (int l = 0; l < LENGTHS; l++) (l < 3 ? counts.first : counts.second) += (unsafe >> l & 1) << l % 3 * 10;
}

DEVICE void give_counts(Awake& res, Counts counts) {
    counts.first = sum_of_warp(counts.first), counts.second = sum_of_warp(counts.second);
    if (LANE == 0) res.counts[WARP] = counts;
    sync();
}

DEVICE int count_of(const Counts& counts, int length) {
    return (length < 3 ? counts.first : counts.second) >> length % 3 * 10 & 1023;
}

// *to(t) = *from(t) for t < count, several at a time. No one is both.
template <typename To, typename From> DEVICE void move_several(int count, To to, From from) {
    const int AT_ONCE = 4;
    ROLLED for (int first = 0; first < count; first += AT_ONCE) {
        decltype(to(0)) at[AT_ONCE];
        auto what = *from(first);
        decltype(what) numbers[AT_ONCE];
        UNROLL for (int t = 0; t < AT_ONCE; t++) {
            int one = first + t < count ? first + t : first;
            at[t] = to(one), numbers[t] = *from(one);
        }
        UNROLL for (int t = 0; t < AT_ONCE; t++) *at[t] = numbers[t];
    }
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`counts`), and which (`unsafe`).
OUTLINED void check(int slots, int steps) {
    HERE;
    Acts& act = res.acts;
    const int AT_ONCE = READ_AT_ONCE, PARTS = 1 + FLOORS;
    int stride = net.stride;
    int count = number_where(
        res.shared, slots, [&](int slot) { return res.sum[slot] != 0 || res.floors[FLOORS - 1][slot] != 0; },
        [&](int slot, int place) {
            act.of[place] = {res.sum[slot], res.floors[0][slot], res.floors[FLOORS - 1][slot], 0};
            res.listed[place] = res.id[slot] * stride;
        });
    // What is read too much counts for nothing; to choose between weights would wait for each of them.
    for EACH(q, AT_ONCE * SHARERS) act.of[count + q] = {0, 0, 0, 0}, res.listed[count + q] = 0;
    sync();
    int n = net.n, n_4 = (n + 3) / 4, team = THREAD / LOOKING;
    ROLLED for (int four = THREAD % LOOKING; four < n_4; four += LOOKING) {
        Four felt[PARTS];
        UNROLL for (int f = 0; f < PARTS; f++) felt[f] = {0, 0, 0, 0};
        const real* P = global(net.P) + 4 * four;
        ROLLED for (int first = team * AT_ONCE; first < count; first += AT_ONCE * SHARERS) {
            Four weights[AT_ONCE];
            FourIds places[AT_ONCE / 4];
            UNROLL for (int j = 0; j < AT_ONCE / 4; j++) places[j] = at_once((const FourIds*)(res.listed + first) + j);
            UNROLL for (int j = 0; j < AT_ONCE; j++) weights[j] = streamed((const Four*)(P + places[j / 4].of[j % 4]));
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                Four acts = at_once(act.of + first + j);
                UNROLL for (int f = 0; f < PARTS; f++)
                    UNROLL for (int e = 0; e < 4; e++) felt[f].of[e] = plus(weights[j].of[e], acts.of[f], felt[f].of[e]);
            }
        }
        UNROLL for (int f = 0; f < PARTS; f++) *(Four*)(act.felt_by[team][f] + 4 * four) = felt[f];
    }
    sync();
    real dynamics[DYNAMICS_CONSTANTS];
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    Counts counts = {0, 0};
    ROLLED for EACH(i, n) {
        real u = res.sleeper_u[i], b = res.sleeper_b[i], s = res.sleeper_s[i], felt[PARTS];
        unsigned unsafe = 0;
        int row = res.row[i];
        UNROLL for (int f = 0; f < PARTS; f++) felt[f] = 0;
        UNROLL for (int t = 0; t < SHARERS; t++)
            UNROLL for (int f = 0; f < PARTS; f++) felt[f] += act.felt_by[t][f][i];
        if (row < 0) {
            if (steps && row == ASLEEP) res.sleeper_u[i] = u = moved(dynamics, u, (real)steps * b - s * felt[0]);
            if (row == JUST_ASLEEP) res.row[i] = ASLEEP;
            unsafe = unsafe_for(dynamics, u, b, s * felt[1], s * felt[FLOORS]);
            count_unsafe(counts, unsafe);
        }
        res.unsafe[i] = unsafe;
    }
    give_counts(res, counts);
}
