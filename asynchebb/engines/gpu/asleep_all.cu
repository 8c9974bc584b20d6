// How sleepers are looked after where many neurons are active, or silent ones are not out of reach: all of them are moved
// and bounded by the columns that act on them, which are read from global memory. A neuron that has just fallen asleep is
// said to be JUST_ASLEEP up to the next time.

// What acts on them: of each slot the sum of its rates in the last block, and its floors; and what they feel of the columns
// of each team, for each of these.
DEVICE Acts& acts_of(Awake& res) {
#if NEAR
    return *(Acts*)(res.tile + res.room * res.pitch);  // what room there is
#else
    return res.acts;
#endif
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`counts`), and which (`unsafe`).
OUTLINED void check_all(int slots, int steps) {
    HERE;
    Acts& act = acts_of(res);
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

#if !NEAR  // all of them are always looked at: what `asleep_near.cu` does is not needed
#define BY_NEAR false

DEVICE int& since(Awake& res, int i) {
    Net& net = res.shared.net;
    return LIST(SINCE)[i];
}
DEVICE int* spare_numbers(Awake& res) { return (int*)res.acts.of; }
DEVICE int room_for_tired(Awake& res) { return SLOTS; }
DEVICE int choose_near(Awake& res, int k, int end, int slots, int spare) { return end; }
DEVICE unsigned short* near_weights(Awake& res, int row) { return nullptr; }
DEVICE unsigned short rounded_down(real weight) { return 0; }
DEVICE int neuron_of_row(Awake& res, int row) { return 0; }
DEVICE int rows_in_use(Awake& res) { return 0; }
DEVICE int row_of_tired(Awake& res, int t) { return JUST_ASLEEP; }
DEVICE void begin_acting(Awake& res, int slot) {}
DEVICE void go_on_acting(Awake& res, int slot) {}
DEVICE void move_acting(Awake& res, int to, int from) {}
DEVICE void settle_waking(Awake& res, int slots, int waking, int k) {}
DEVICE void settle_tired(Awake& res, int slots, int tired) {}
DEVICE void settle_others(Awake& res, int tired) {}
DEVICE void settle_all(Awake& res, int slots, int k) {}
DEVICE void move_near(Awake& res, const int* to, const int* from, int moves) {}
DEVICE void check_near(int slots, int k, int steps) {}
#endif
