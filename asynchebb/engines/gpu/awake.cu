// Awake neurons apart: those that are active or may soon be.
//
// Each of them has a slot: a place for its state, a row and a column of the weights between those that are awake (the
// tile). A team of four threads shares three rows or more: each has a quarter of the columns, of the first ones a copy in
// registers. So a rate that is read serves several rows, and a step is a sweep over the columns, some shuffles, one barrier
// of the warps that have slots, and little else.
//
// Steps are taken in blocks, between which the others are looked after: see `asleep.cu`. A block ends early when a rate
// falls below its floor.
#define TEAM (WARP * 8 + LANE % 8)          // of this thread
#define MINE (LANE / 8)                     // its number in the team
#define GROUP 16                            // columns, four for each thread of a team
#define GROUPS_OF(slots) (((slots) + GROUP - 1) / GROUP)
#define RATES ((GROUPS_OF(SLOTS) + 1) * GROUP)  // in the slots, and
#define FLAG (RATES - GROUP)                // behind them: does the block end?
// Threads that move rows of columns beside each other use different banks.
#define PITCH ((SLOTS + 3) / 8 * 8 + 4)
#define POOL (SLOTS * PITCH + 64)
#define ALL_SLOTS (GROUPS_OF(SLOTS) * GROUP)
#define SHARERS (THREADS > 128 ? THREADS / 128 : 1)  // teams that share the columns that act on sleepers
#define READ_AT_ONCE 20                     // such columns
#define LOOKING (THREADS / SHARERS)         // threads of such a team; each has four rows at a time
#define LENGTHS 5                           // of a block: 64, 32, 16, 8 or 4 steps
#define LONGEST 64
#define SHORT (FLOORS > 1 ? 3 : LENGTHS)    // the first of those lengths for which floors are higher:
#define FLOOR_IF_SHORT ((real)0.99)         // so much of the rate, and
#define FORESEEN_IF_SHORT 8                 // steps for which it may fall as it does now; instead of FLOOR, FORESEEN
#define FEW_SLEEP 8                         // neurons for which it pays to put them to sleep

enum { ASLEEP = -1, JUST_ASLEEP = -2 };

struct Block {  // of steps that are taken
    int k, left, slots, now;
    bool is_short;
};

struct Acts {  // see `asleep.cu`
    alignas(16) Four of[SLOTS + READ_AT_ONCE * SHARERS];
    real felt_by[SHARERS][1 + FLOORS][NEURONS];
};

struct Counts { unsigned first, second; };  // of the sleepers of a warp that might become active: by length, 10 bits each

struct Awake {  // in shared memory
    Shared shared;
    alignas(16) real y[2 * RATES];              // before and after a step
    // Per slot: its neuron; `felt` is the inhibition at the last step, `total` the sum of all rates, the last of
    // `floors` that if the block is SHORT; has the row grown since it was loaded?
    int id[SLOTS];
    real u[SLOTS], b[SLOTS], s[SLOTS], a[SLOTS], scale[SLOTS], shift[SLOTS];
    alignas(16) real sum[ALL_SLOTS], floors[FLOORS][ALL_SLOTS];
    real felt[SLOTS], total[SLOTS];
    alignas(8) long long c[SLOTS];
    unsigned char grown[SLOTS];
    alignas(16) int listed[SLOTS + READ_AT_ONCE * SHARERS];
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    Shown shown;
    Block block;
    Counts counts[WARPS];
    int reached, odd, kept;                     // the step that was; has a row to be rectified; columns in `Acting`
    real sleeper_u[NEURONS], sleeper_b[NEURONS], sleeper_s[NEURONS];
    unsigned char unsafe[NEURONS];              // the lengths for which a sleeper might become active
    alignas(8) short row[NEURONS];              // of a neuron, which is its slot; or ASLEEP or JUST_ASLEEP
    Acts acts;
    // m̂_ij for row i and column j is at j * PITCH + i. A team reads all of its rows, used or not.
    alignas(16) real tile[POOL];
};
typedef Awake Memory;

// Have the constants at hand.
DEVICE void keep_constants(Awake& res) {
    Net& net = res.shared.net;
    for EACH(j, DYNAMICS_CONSTANTS) res.dynamics[j] = net.dynamics[j];
    for EACH(j, SCHEDULE_CONSTANTS) res.schedule[j] = net.schedule[j];
    for EACH(j, RULE_CONSTANTS) res.rule[j] = net.rule[j];
    sync();
    if (THREAD == 0) net.dynamics = res.dynamics, net.schedule = res.schedule, net.rule = res.rule;
    sync();
}

DEVICE Acting acting() {  // in the tile, which no one uses then
    Awake& res = *(Awake*)SHARED_MEMORY;
    const int LISTED_AT_MOST = NEURONS + 16, KEPT = AT_MOST_KEPT + 4;
    real *rates = res.tile + LISTED_AT_MOST, *owners = rates + LISTED_AT_MOST, *columns = owners + 2 * KEPT;
    int pitch = ((int)res.shared.net.n + 3) / 4 * 4, room = (int)(res.tile + POOL - 64 - columns) / pitch;
    room = room < AT_MOST_KEPT ? room : AT_MOST_KEPT;
    return {(FourIds*)res.tile, (Four*)rates, columns, room, pitch, res.kept, (int*)owners, (Four*)(owners + KEPT),
            res.unsafe, res.shared};
}

// Functions of their own, lest what is needed around them takes registers from what they do most.
#define HERE Awake& res = *(Awake*)SHARED_MEMORY; Net& net = res.shared.net

// ROWS of a thread's team: three or four of the first slots, and of those past THREADS the others. It follows the neurons in
// OWNS slots. Warps have so many of the first slots each.
template <int ROWS> struct Layout {
    static const int FIRST = ROWS < 4 ? ROWS : 4, OTHERS = ROWS - FIRST, OWNS = OTHERS ? 2 : 1, PER_WARP = 8 * FIRST;
    // Where the team's rows r, r + 1, … are.
    DEVICE int row(int r) { return r < FIRST ? FIRST * TEAM + r : THREADS + OTHERS * TEAM + r - FIRST; }
    DEVICE int slot(int own) {
        return own == 0 ? (MINE < FIRST ? row(MINE) : SLOTS) : MINE < OTHERS ? row(FIRST + MINE) : SLOTS;
    }
};

DEVICE bool three_rows(int slots) { return slots <= THREADS * 3 / 4; }

// A thread's share of M̂ while it takes steps: of its team's rows, four columns of each group.
template <int ROWS, int USED> struct Weights {
    real of[USED][4][ROWS];
    bool grown;  // has a row?
};

// The weights of a column to the team's rows.
template <int ROWS> DEVICE void read_rows(real* to, const real* column) {
    if (ROWS >= 4) {
        Four some = at_once((const Four*)(column + Layout<ROWS>::row(0)));
        UNROLL for (int r = 0; r < 4; r++) to[r] = some.of[r];
    }
    UNROLL for (int r = ROWS < 4 ? 0 : 4; r < ROWS; r++) to[r] = column[Layout<ROWS>::row(r)];
}

template <int ROWS> DEVICE void write_rows(real* column, const real* from, int slots) {
    const int FIRST = Layout<ROWS>::FIRST;
    if (Layout<ROWS>::row(0) < slots) {  // else a place of the next column
        if (FIRST == 4) {
            Four some;
            UNROLL for (int r = 0; r < 4; r++) some.of[r] = from[r < ROWS ? r : 0];
            *(Four*)(column + Layout<ROWS>::row(0)) = some;
        } else
            UNROLL for (int r = 0; r < FIRST; r++) column[Layout<ROWS>::row(r)] = from[r];
    }
    if (ROWS > FIRST && Layout<ROWS>::row(FIRST) < slots)
        UNROLL for (int r = FIRST; r < ROWS; r++) column[Layout<ROWS>::row(r)] = from[r];
}

// Past the last slot there are numbers too, and rates of 0.
template <int ROWS, int USED> DEVICE void copy_to_registers(Awake& res, Weights<ROWS, USED>& m) {
    int pitch = PITCH;
    m.grown = false;
    UNROLL for (int g = 0; g < USED; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = GROUP * g + 4 * MINE + e;
            if (GROUP * (g + 1) > SLOTS) slot = slot < SLOTS ? slot : SLOTS - 1;
            read_rows<ROWS>(m.of[g][e], res.tile + slot * pitch);
        }
}

template <int ROWS, int USED> DEVICE void copy_to_tile(Awake& res, const Weights<ROWS, USED>& m, int slots) {
    if (!m.grown) return;
    int pitch = PITCH;
    UNROLL for (int g = 0; g < USED; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = GROUP * g + 4 * MINE + e;
            if (slot < slots) write_rows<ROWS>(res.tile + slot * pitch, m.of[g][e], slots);
        }
}

// The rates that this thread needs: those of its columns in registers, if there are not too many of them.
#define KEPT(used) ((used) <= 8 ? (used) : 1)

template <int USED> struct Rates {
    real ends;  // does the block end?
    Four of[KEPT(USED)];
};

template <int USED> DEVICE void read_rates(Awake& res, Rates<USED>& rates, int now) {
    const real* y = res.y + now + 4 * MINE;
    rates.ends = one_at_once(res.y + now + FLAG);
    if (KEPT(USED) == USED)
        UNROLL for (int g = 0; g < KEPT(USED); g++) rates.of[g] = at_once((const Four*)(y + GROUP * g));
}

// act(g, rates) for each group of columns in registers, and the rates of this thread's four.
template <int USED, typename Act> DEVICE void each_group(Awake& res, const Rates<USED>& rates, int now, Act act) {
    const int AT_ONCE = 2;  // groups whose rates are on their way
    if (KEPT(USED) == USED) {
        UNROLL for (int g = 0; g < KEPT(USED); g++) act(g, rates.of[g]);
        return;
    }
    const real* y = res.y + now + 4 * MINE;
    Four some[2][AT_ONCE];
    UNROLL for (int g = 0; g < AT_ONCE; g++) some[0][g] = at_once((const Four*)(y + GROUP * g));
    UNROLL for (int first = 0; first < USED; first += AT_ONCE) {
        UNROLL for (int g = 0; g < AT_ONCE; g++)
            if (first + AT_ONCE + g < USED)
                some[(first / AT_ONCE + 1) % 2][g] = at_once((const Four*)(y + GROUP * (first + AT_ONCE + g)));
        sync_warp();  // or each rate would be asked for when it is needed
        UNROLL for (int g = 0; g < AT_ONCE; g++)
            if (first + g < USED) act(first + g, some[first / AT_ONCE % 2][g]);
    }
}

// This thread's part of M̂ @ y for its team's rows: over its columns in registers and, if there are MORE, in the tile.
// One sum takes four cycles to become the next: of three rows, columns are added up in two sums in turn.
template <int ROWS, int USED, bool MORE>
DEVICE void sweep(Awake& res, const Weights<ROWS, USED>& m, const Rates<USED>& rates, int now, int slots, real* part) {
    const int SUMS = ROWS < 4 ? 2 : 1;
    real sums[SUMS][ROWS];
    UNROLL for (int a = 0; a < SUMS; a++)
        UNROLL for (int r = 0; r < ROWS; r++) sums[a][r] = 0;
    each_group<USED>(res, rates, now, [&](int g, const Four& some) {
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < ROWS; r++) sums[e % SUMS][r] = plus(m.of[g][e][r], some.of[e], sums[e % SUMS][r]);
    });
    UNROLL for (int r = 0; r < ROWS; r++) part[r] = SUMS > 1 ? sums[0][r] + sums[SUMS - 1][r] : sums[0][r];
    if (MORE)
        ROLLED for (int slot = USED * GROUP; slot < slots; slot += GROUP) {
            Four some = at_once((const Four*)(res.y + now + 4 * MINE + slot));  // past the last slot rates are 0
            real weights[4][ROWS];
            UNROLL for (int e = 0; e < 4; e++) {
                int column = slot + 4 * MINE + e < slots ? slot + 4 * MINE + e : 0;
                read_rows<ROWS>(weights[e], res.tile + column * PITCH);
            }
            sync_warp();
            UNROLL for (int e = 0; e < 4; e++)
                UNROLL for (int r = 0; r < ROWS; r++) part[r] = plus(weights[e][r], some.of[e], part[r]);
        }
}

// Add up the parts of a team: each gives away what belongs to the others' rows, two of four sums, then one of two.
template <int ROWS> DEVICE void add_parts(const real* part, real* felt) {
    bool odd = MINE & 1, high = MINE & 2;
    UNROLL for (int r = 0; r < ROWS; r += 4) {
        auto of = [&](int row) { return row < ROWS ? part[row] : (real)0; };
        real first = shuffle_xor(odd ? of(r) : of(r + 1), 8) + (odd ? of(r + 1) : of(r));
        if (r + 2 < ROWS) {
            real second = shuffle_xor(odd ? of(r + 2) : of(r + 3), 8) + (odd ? of(r + 3) : of(r + 2));
            felt[r / 4] = (high ? second : first) + shuffle_xor(high ? first : second, 16);
        } else
            felt[r / 4] = first + shuffle_xor(first, 16);
    }
}

// M̂ += gains yᵀ for the rows of a warp.
template <int ROWS, int USED, bool MORE>
DEVICE void grow(Awake& res, Weights<ROWS, USED>& m, const Rates<USED>& rates, int now, int slots, const real* gain) {
    real gains[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
        gains[r] = shuffle(gain[r / 4], LANE % 8 + 8 * (r % 4)), m.grown |= gains[r] != 0;
    each_group<USED>(res, rates, now, [&](int g, const Four& some) {
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < ROWS; r++) m.of[g][e][r] = plus(gains[r], some.of[e], m.of[g][e][r]);
    });
    if (MORE && m.grown)
        ROLLED for (int slot = USED * GROUP; slot < slots; slot += GROUP) {
            Four some = at_once((const Four*)(res.y + now + 4 * MINE + slot));
            UNROLL for (int e = 0; e < 4; e++)
                if (slot + 4 * MINE + e < slots) {
                    real *column = res.tile + (slot + 4 * MINE + e) * PITCH, weights[ROWS];
                    read_rows<ROWS>(weights, column);
                    UNROLL for (int r = 0; r < ROWS; r++) weights[r] = plus(gains[r], some.of[e], weights[r]);
                    write_rows<ROWS>(column, weights, slots);
                }
        }
}

struct Own {  // of the neuron in a thread's slot
    real u, y, b, s, a, scale, shift, sum, lowest, felt;
    long long c;
    bool grown;
};

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Awake& res, int slot, bool is_one, real y, bool opened, int k, long long t) {
    if (net.trace_y && is_one) global(net.trace_y)[t * net.n + res.id[slot]] = y;
    if (net.trace_burst && is_one) global(net.trace_burst)[t * net.n + res.id[slot]] = opened;
    int more_than_0 = popcount(vote(is_one && y > 0)), not_0 = popcount(vote(is_one && y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
}

// The same as `odd_W` or `odd_M`, without choices that wait for each other: a block's next step waits for it. `room` is
// 0, or if there is a floor −1.
DEVICE bool may_be_odd(const Terms& terms, real scale, real s, real room) {
    real scales = fmin(scale * terms.keep_w, s * terms.keep_m) - SMALLEST_SCALE;
    return !(fmin(fmin(fmin(terms.keep_w, terms.keep_m), room), fmin(terms.gain, scales)) >= 0);
}

// Take so many steps from k on, or fewer: up to the first at which a rate falls below its floor, or a row has to be
// rectified. Gives the step that was reached. Only warps that have slots do this.
template <bool TRACED, int ROWS, int USED, bool MORE> OUTLINED int take_steps() {
    HERE;
    const int OWNS = Layout<ROWS>::OWNS;
    Block block = res.block;
    int k = block.k, left = block.left, slots = block.slots, now = block.now, pixels = res.shared.pixels;
    long long hold_start = res.shown.hold_start;
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS], unused;
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = res.schedule[j];
    UNROLL for (int j = 0; j < RULE_CONSTANTS; j++) rule[j] = res.rule[j];
    real x_x = net.x_x, room = net.floor == 0 ? (real)0 : (real)-1;
    int hold = net.hold, slot[OWNS], warps = (slots + Layout<ROWS>::PER_WARP - 1) / Layout<ROWS>::PER_WARP;
    warps = warps < WARPS ? warps : WARPS;
    bool is_one[OWNS];
    Own own[OWNS];
    UNROLL for (int o = 0; o < OWNS; o++) {
        int q = slot[o] = Layout<ROWS>::slot(o);
        is_one[o] = q < slots;
        q = is_one[o] ? q : 0;
        own[o] = {res.u[q], is_one[o] ? res.y[now + q] : (real)0, res.b[q], res.s[q], res.a[q], res.scale[q], res.shift[q], 0,
                  is_one[o] ? res.floors[block.is_short ? FLOORS - 1 : 0][q] : (real)0, 0, res.c[q], false};
    }
    Weights<ROWS, USED> m;
    Rates<USED> rates;
    copy_to_registers(res, m);
    read_rates(res, rates, now);
    while (true) {
        real part[ROWS], felt[OWNS], gain[OWNS], *next = res.y + (RATES - now);
        bool opened[OWNS], odd[OWNS];
        Terms terms[OWNS];
        sweep<ROWS, USED, MORE>(res, m, rates, now, slots, part);
        if (rates.ends != 0) break;  // asked for only now, when it is known: what was added up is not needed
        sync_warp();  // or the compiler would see to it before each shuffle
        add_parts<ROWS>(part, felt);
        UNROLL for (int o = 0; o < OWNS; o++) {
            // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
            real beta, new_u, new_y;
            long long new_c;
            step(dynamics, own[o].u, 0, 0, own[o].b - own[o].s * felt[o], 0, new_u, new_y, unused, unused);
            new_y = is_one[o] ? new_y : (real)0;
            if (is_one[o]) next[slot[o]] = new_y;
            gate(schedule, new_y, 0, own[o].c, k, hold, beta, new_c);
            terms[o] = terms_of_update(rule, new_y, own[o].a);
            opened[o] = is_one[o] & (beta != 0);
            odd[o] = opened[o] & may_be_odd(terms[o], own[o].scale, own[o].s, room);
            if (!(new_y >= own[o].lowest)) next[FLAG] = 1;
            if (odd[o]) next[FLAG] = 1;
            own[o].sum += own[o].y, own[o].u = new_u, own[o].y = new_y, own[o].c = new_c, own[o].felt = felt[o];
        }
        if (TRACED) {
            UNROLL for (int o = 0; o < OWNS; o++) trace(net, res, slot[o], is_one[o], own[o].y, opened[o], k, hold_start + k);
            if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
        }
        sync_first(warps);
        now = RATES - now;
        read_rates(res, rates, now);
        // Meanwhile: W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M; what is odd is left to `update`
        bool any_opened = false;
        UNROLL for (int o = 0; o < OWNS; o++) any_opened |= opened[o];
        if (vote_any(any_opened)) {
            UNROLL for (int o = 0; o < OWNS; o++) {
                gain[o] = 0;
                if (opened[o] & !odd[o]) {
                    own[o].a = terms[o].a;
                    own[o].scale *= terms[o].keep_w;
                    own[o].shift = terms[o].keep_w * own[o].shift + terms[o].gain;
                    own[o].b = terms[o].keep_w * own[o].b + terms[o].gain * x_x;
                    own[o].s *= terms[o].keep_m;
                    gain[o] = terms[o].gain * reciprocal(own[o].s);
                    own[o].grown |= gain[o] != 0;
                }
                if (odd[o]) TRUTH(OPENED)[res.id[slot[o]]] = 1, res.odd = 1;
                if (TRACED && opened[o] && !odd[o] && net.trace_updates)
                    add_to(&global(net.trace_updates)[hold_start + k],
                           synapses_changed(net, terms[o], own[o].y, pixels, (int)res.shared.active[k % 3]));
            }
            grow<ROWS, USED, MORE>(res, m, rates, now, slots, gain);
        }
        k++;
        if (--left == 0) break;
    }
    copy_to_tile(res, m, slots);
    UNROLL for (int o = 0; o < OWNS; o++)
        if (is_one[o]) {
            int q = slot[o];
            res.u[q] = own[o].u, res.b[q] = own[o].b, res.s[q] = own[o].s, res.c[q] = own[o].c, res.a[q] = own[o].a;
            res.scale[q] = own[o].scale, res.shift[q] = own[o].shift, res.sum[q] = own[o].sum, res.felt[q] = own[o].felt;
            if (own[o].grown) TRUTH(GROWN)[res.id[q]] = res.grown[q] = 1;
        }
    return k;
}

// How many groups of columns are in registers, if there are so many slots.
#define IN_REGISTERS(rows, slots) \
    (REGISTERS / (4 * (rows)) < GROUPS_OF(slots) ? REGISTERS / (4 * (rows)) : GROUPS_OF(slots))
#define AT_MOST(slots) (SLOTS < (slots) ? SLOTS : (slots))

// With as few of the columns in registers as are enough; or with all, and MORE of them in the tile.
template <int ROWS, int MOST, int FEWEST, bool MORE> DEVICE int take_steps_of(int slots) {
    if constexpr (MOST > FEWEST)
        if (slots <= (MOST - 1) * GROUP) return take_steps_of<ROWS, MOST - 1, FEWEST, false>(slots);
    if constexpr (MORE)
        if (slots > MOST * GROUP) return take_steps<false, ROWS, MOST, true>();
    return take_steps<false, ROWS, MOST, false>();
}

DEVICE int take_any_steps(int slots, bool traced) {
    const int FEW_SLOTS = AT_MOST(THREADS * 3 / 4), SOME_SLOTS = AT_MOST(THREADS);
    const int MOST_OF_THREE = IN_REGISTERS(3, FEW_SLOTS), MOST_OF_FOUR = IN_REGISTERS(4, SOME_SLOTS);
    const bool MORE_OF_THREE = MOST_OF_THREE < GROUPS_OF(FEW_SLOTS), MORE_OF_FOUR = MOST_OF_FOUR < GROUPS_OF(SOME_SLOTS);
    if (three_rows(slots)) {
        if (traced) return take_steps<true, 3, MOST_OF_THREE, MORE_OF_THREE>();
        return take_steps_of<3, MOST_OF_THREE, (MOST_OF_THREE > 4 ? MOST_OF_THREE - 3 : 1), MORE_OF_THREE>(slots);
    }
#if SLOTS > THREADS
    if (slots > THREADS) {
        const int ROWS = SLOTS <= THREADS * 3 / 2 ? 6 : 8, MOST = IN_REGISTERS(ROWS, SLOTS);
        if (traced) return take_steps<true, ROWS, MOST, true>();
        return take_steps<false, ROWS, MOST, true>();
    }
#endif
    if (traced) return take_steps<true, 4, MOST_OF_FOUR, MORE_OF_FOUR>();
    return take_steps_of<4, MOST_OF_FOUR, (MOST_OF_FOUR > 1 ? MOST_OF_FOUR - 1 : 1), MORE_OF_FOUR>(slots);
}

// Does this warp take part?
DEVICE bool has_slots(int slots) {
    return slots > WARP * (three_rows(slots) ? Layout<3>::PER_WARP : Layout<4>::PER_WARP);
}
