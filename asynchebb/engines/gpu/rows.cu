// Followed rows: their weights, in registers, and what a step does with them.

// A thread's share of M̂: of its team's rows, four columns of each group that is in registers.
struct Weights {
    real of[GROUPS][4][4];
};

// The rates of this thread's columns in registers, if they are not too many. USED groups are, perhaps one more than there are
// in registers: all that are in the tile.
#define AT_HAND_RATES (FEW_LEFT ? 1 : GROUPS)
#define AT_HAND(used) ((used) < GROUPS ? (used) : GROUPS)

struct Rates {
    Four of[AT_HAND_RATES];
};

template <int USED> DEVICE void read_rates(const real* y, Rates& rates) {
    if (!FEW_LEFT) UNROLL for (int g = 0; g < AT_HAND(USED); g++) rates.of[g] = at_once((const Four*)(y + GROUP * g));
}

// act(g, rates) for each group of columns in registers that is used, and the rates of this thread's four.
template <int USED, typename Act> DEVICE void each_group(Near& res, int thread, const Rates& rates, int now, Act act) {
    if constexpr (!FEW_LEFT) {
        UNROLL for (int g = 0; g < AT_HAND(USED); g++) act(g, rates.of[g]);
    } else {
        const int AT_ONCE = 2;  // groups whose rates are on their way
        const real* y = res.y + now + 4 * MINE_OF(thread);
        Four some[2][AT_ONCE];
        UNROLL for (int g = 0; g < AT_ONCE; g++) some[0][g] = at_once((const Four*)(y + GROUP * g));
        UNROLL for (int first = 0; first < GROUPS; first += AT_ONCE) {
            UNROLL for (int g = 0; g < AT_ONCE; g++)
                if (first + AT_ONCE + g < GROUPS)
                    some[(first / AT_ONCE + 1) % 2][g] = at_once((const Four*)(y + GROUP * (first + AT_ONCE + g)));
            sync_warp();  // or each rate would be asked for when it is needed
            UNROLL for (int g = 0; g < AT_ONCE; g++)
                if (first + g < GROUPS) act(first + g, some[first / AT_ONCE % 2][g]);
        }
    }
}

// The weights of a column that is not in registers to the team's rows, in the order of the one thread that has it.
DEVICE Four* in_tile(Near& res, int thread, int place) {
    return (Four*)(res.pool + (place - IN_REGISTERS) * THREADS + 4 * TEAM_OF(thread));
}

// This thread's part of M̂ @ y for its team's rows; and of yᵀy, if that is wanted (SQUARES).
template <int USED, bool SQUARES>
DEVICE void sweep(Near& res, int thread, const Weights& m, const Rates& rates, int now, int columns, real* part,
                  real& squares) {
    UNROLL for (int r = 0; r < 4; r++) part[r] = 0;
    squares = 0;
    each_group<USED>(res, thread, rates, now, [&](int g, const Four& some) {
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < 4; r++) part[r] = plus(m.of[g][e][r], some.of[e], part[r]);
        if (SQUARES) UNROLL for (int e = 0; e < 4; e++) squares = plus(some.of[e], some.of[e], squares);
    });
    if (USED > GROUPS)
        ROLLED for (int first = IN_REGISTERS; first < columns; first += GROUP) {  // past the last one rates are 0
            int place = first + 4 * MINE_OF(thread);
            Four some = at_once((const Four*)(res.y + now + place)), weights[4];
            UNROLL for (int e = 0; e < 4; e++) weights[e] = at_once(in_tile(res, thread, place + e));
            sync_warp();
            UNROLL for (int e = 0; e < 4; e++)
                UNROLL for (int r = 0; r < 4; r++) part[r] = plus(weights[e].of[r], some.of[e], part[r]);
            if (SQUARES) UNROLL for (int e = 0; e < 4; e++) squares = plus(some.of[e], some.of[e], squares);
        }
}

// Add up the parts of a team: each gives away what belongs to the others' rows.
DEVICE real add_parts(const real* part) {
    real first = part[0] + shuffle_xor(part[1], 8), second = part[2] + shuffle_xor(part[3], 8);
    return first + shuffle_xor(second, 16);
}

// M̂ += gains yᵀ for the rows of a team.
template <int USED>
DEVICE void grow(Near& res, int thread, Weights& m, const Rates& rates, int now, int columns, const real* gains) {
    each_group<USED>(res, thread, rates, now, [&](int g, const Four& some) {
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < 4; r++) m.of[g][e][r] = plus(gains[r], some.of[e], m.of[g][e][r]);
    });
    if (USED > GROUPS)
        ROLLED for (int first = IN_REGISTERS; first < columns; first += GROUP) {
            int place = first + 4 * MINE_OF(thread);
            Four some = at_once((const Four*)(res.y + now + place));
            UNROLL for (int e = 0; e < 4; e++) {
                Four weights = at_once(in_tile(res, thread, place + e));
                UNROLL for (int r = 0; r < 4; r++) weights.of[r] = plus(gains[r], some.of[e], weights.of[r]);
                *in_tile(res, thread, place + e) = weights;
            }
        }
}

// act(group, which, q) for each group in which columns come and go: which of this thread's four do, a bit each, and the first
// of these is the q-th of all.
template <typename Act> DEVICE void each_going(Near& res, int thread, Act act) {
    unsigned places[WARPS];
    int before = 0;
    UNROLL for (int w = 0; w < WARPS; w++) places[w] = res.going[w];
    UNROLL for (int g = 0; g < MOST / GROUP; g++) {
        unsigned some = places[GROUP * g / 32] >> GROUP * g % 32 & ((1u << GROUP) - 1);
        if (some) act(g, some >> 4 * MINE_OF(thread), before + popcount(some & ((1u << 4 * MINE_OF(thread)) - 1)));
        before += popcount(some);
    }
}

// The weights of one of this thread's columns: in registers, or in the tile.
DEVICE real* weights_of(Near& res, int thread, Weights& m, int group, int e) {
    return group < GROUPS ? m.of[group < GROUPS ? group : 0][e]
                          : in_tile(res, thread, GROUP * group + 4 * MINE_OF(thread) + e)->of;
}

// Take the weights of a column, if it is one of this thread's. Gives whether it is.
template <int AT> DEVICE void take_registers(const Weights& m, int group, int mine, Four& weights) {
    if constexpr (AT % 4 == 0 && AT / 4 + 1 < GROUPS)
        if (group != AT / 4) return take_registers<AT + 4>(m, group, mine, weights);
    if (mine == AT % 4) {
        UNROLL for (int r = 0; r < 4; r++) weights.of[r] = m.of[AT / 4][AT % 4][r];
        UNLIKE(AT);
    }
    if constexpr (AT % 4 < 3) take_registers<AT + 1>(m, group, mine, weights);
}

DEVICE bool take_column(Near& res, int thread, const Weights& m, int place, Four& weights) {
    int group = place / GROUP, mine = place % GROUP - 4 * MINE_OF(thread);
    bool is_mine = mine >= 0 && mine < 4;
    if (MOST == IN_REGISTERS || group < GROUPS) take_registers<0>(m, group, mine, weights);
    else if (is_mine) weights = *in_tile(res, thread, place);
    return is_mine;
}

// The weight of the q-th column on its way to followed rows.
DEVICE real on_the_way(Near& res, int thread, int q, int r) { return res.fetched[q * THREADS + TEAM_ROW_OF(thread, r)]; }

// Of a team's rows: their neurons, and which have grown.
struct TeamRows {
    int ids[4];
    bool grown[4], any;
};

DEVICE TeamRows rows_of_team(Near& res, int thread) {
    TeamRows rows;
    UNROLL for (int r = 0; r < 4; r++)
        rows.ids[r] = res.id[TEAM_ROW_OF(thread, r)], rows.grown[r] = res.grown[TEAM_ROW_OF(thread, r)];
    rows.any = rows.grown[0] | rows.grown[1] | rows.grown[2] | rows.grown[3];
    return rows;
}

// Put the weights of a neuron's column back where they belong, if their rows have grown.
DEVICE void put_back(Near& res, const real* weights, int neuron, const TeamRows& rows) {
    Net& net = res.shared.net;
    real* column = global(net.P) + (size_t)neuron * net.stride;
    UNROLL for (int r = 0; r < 4; r++)
        if (rows.grown[r]) column[rows.ids[r]] = weights[r];
}

// The same for idle rows: the columns of so many neurons, neuron_of(q), in the places place_of(q).
template <typename Neuron, typename Place> DEVICE void put_back_idle(Near& res, int count, Neuron neuron_of, Place place_of) {
    Net& net = res.shared.net;
    ROLLED for EACH(j, res.rows - THREADS) {
        if (!res.grown[THREADS + j]) continue;
        real *row = global(net.P) + res.id[THREADS + j], *weights = idle_weights(res) + j;
        int pitch = res.pitch;
        ROLLED for (int q = 0; q < count; q++)
            if (neuron_of(q) >= 0) row[(size_t)neuron_of(q) * net.stride] = weights[place_of(q) * pitch];
    }
}

// What is needed of a followed neuron at each step. It is in registers, and while others are looked after in shared memory.
struct Own {
    real u, y, b, s, sum, scale, felt;  // the sum of y since idle neurons were moved; the least of both scales; M̂ y
    // A flag goes up where y or sign y is less: where y is below its floor; or is not 0, if there is no column.
    real lowest, sign;
    long long c;
    int column;  // or NO_COLUMN, or NO_ONE

    MEMBER bool has_column() const { return column < FLAG; }
    MEMBER bool is_low() const { return !(fmin(y, sign * y) >= lowest); }
};

DEVICE Own own_of(Near& res, int id) {
    Net& net = res.shared.net;
    int i = id < 0 ? 0 : id, column = id < 0 ? -1 : res.column[i];
    return {ROW(U)[i], id < 0 ? (real)0 : ROW(Y)[i], ROW(B)[i],
            ROW(S)[i], 0,                            fmin(ROW(SCALE)[i], ROW(S)[i]),
            0,         id < 0 || (column >= 0 && !IDLE) ? NO_FLOOR : column < 0 ? (real)0 : res.y[FLOORS + column],
            id >= 0 && column < 0 ? (real)-1 : (real)1, COUNT(C)[i], id < 0 ? NO_ONE : column < 0 ? NO_COLUMN : column};
}

DEVICE void keep(Near& res, int row, int id, const Own& own) {
    Net& net = res.shared.net;
    if (id >= 0) {
        ROW(U)[id] = own.u, ROW(Y)[id] = own.y, ROW(B)[id] = own.b, ROW(S)[id] = own.s, COUNT(C)[id] = own.c;
        res.sums[id] += own.sum;
    }
    if (own.has_column()) res.acts[own.column] += own.sum;
    res.inhibition[row] = own.felt;
}

// Has a row to be rectified, or its scales to be brought back to 1? The same as `odd_W` or `odd_M`, without choices that wait
// for each other. `room` is 0, or if there is a floor −1.
DEVICE bool may_be_odd(const Terms& terms, real scale, real room) {
    real least = fmin(terms.keep_w, terms.keep_m);
    return !(fmin(fmin(terms.gain, room), scale * least - SMALLEST_SCALE) >= 0 && least >= 0);
}

// Bits are in these words, one for each thread in as many passes: how many are set, and before this thread's.
template <int IN> DEVICE int count_bits(const unsigned* words, int* before) {
    int all = 0;
    UNROLL for (int pass = 0; pass < IN; pass++)
        UNROLL for (int w = 0; w < WARPS; w++) {
            unsigned word = words[pass * WARPS + w];
            if (w == WARP) before[pass] = all + popcount(word & ((1u << LANE) - 1));
            all += popcount(word);
        }
    return all;
}
