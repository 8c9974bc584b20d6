// Awake neurons apart: those that are active or may soon be.
//
// Near neurons, those that might become active within a spell of some hundred steps, have a row each of a tile in shared
// memory. The awake ones among them come first, and have a slot each: a row, and a column of the weights from it to all
// near ones. A team of four threads shares four rows: each has a quarter of the columns, and of the first COLUMNS a copy
// in registers. So a rate that is read serves several rows, and a step is a sweep over the columns, some shuffles,
// one barrier of the warps that have slots, and little else.
//
// The other near neurons sleep. They are looked after block by block: from a floor under each rate follows a bound on
// their drives, and those that it does not keep silent for the length of the block are woken beforehand. A block ends
// early when a rate falls below its floor. So what is computed is exact, and never undone. Far neurons stay silent up to
// the end of the spell, even if nothing inhibits them, and take one step with the summed drive then.
#define TEAM (WARP * 8 + LANE % 8)          // of this thread
#define MINE (LANE / 8)                     // its number in the team
#define SLOT (4 * TEAM + MINE)              // it follows the neuron in this slot
#define GROUP 16                            // columns, four for each thread of a team
#define GROUPS (COLUMNS / GROUP)            // in registers,
#define FEWER(by) (GROUPS > by ? GROUPS - by : 1)  // of which often fewer are enough
#define RATES (SLOTS + GROUP)               // in the slots, and flags that say whether the block ends, 4 after each other
#define QUADS ((NEAR / 4 + 31) / 32 * 32)   // threads that look at all near rows, four each: whole warps
#define PARTS (THREADS / QUADS < 4 ? THREADS / QUADS : 4)  // such teams, which share the slots
#define LOOKS ((NEAR + THREADS - 1) / THREADS)  // rows that a thread looks after
#define LENGTHS 5                           // of a block: 64, 32, 16, 8 or 4 steps
#define LONGEST 64
#define FORESEEN 32                         // steps for which floors allow rates to fall as they do now
#define SPARE 24                            // slots that there should be for those who wake
#define FEW_WAKE 4                          // a block is so long that no more than these have to be woken, if that helps

struct Awake {  // in shared memory
    Shared shared;
    alignas(16) real y[2 * RATES];              // before and after a step
    alignas(16) real both[2 * SLOTS];           // per slot: rates added up since the block began, and the floor under it
    real total[SLOTS];                          // rates added up since the spell began
    real a[SLOTS], scale[SLOTS], shift[SLOTS];
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    int id[NEAR];                               // which neuron has a row
    real u[NEAR], b[NEAR], s[NEAR];             // of those that sleep
    alignas(16) real inhibition[PARTS][NEAR], least[PARTS][NEAR];
    FourIds unsafe[LOOKS * WARPS];              // sleepers that might become active, for two lengths of a block each
    int woken[SLOTS];                           // rows of those who wake
    unsigned char grown[SLOTS];                 // has the row grown in this spell?
    int reached, odd;                           // the step that was; has a row to be rectified?
    int parts[WARPS];                           // see `choose`
    alignas(8) short row[LARGE];                // of a neuron; −1 if it is far
    // m̂_ij for row i and slot j is at j * pitch + i: the more rows there are, the fewer slots. A warp reads all of its
    // rows, used or not.
    alignas(16) real tile[TILE + 32];
};
typedef Awake Memory;

// Functions of their own, lest what is needed around them takes registers from what they do most.
#define HERE Awake& res = *(Awake*)SHARED_MEMORY; Net& net = res.shared.net

// Which neurons are far, which sleep and which are awake, from step k on: AWAKE are those that are active or whose gates
// may open before the last step; far are those that stay silent up to the end whatever happens. Gives that end; k if
// there are too many of them. Those near are listed in `id`, the awake ones first; there is room for so many slots. New
// c's of the silent ones are left in NEW_C; those whose gates open at the hold's last step alone, as with a discrete
// schedule, are OPENED.
enum { FAR, SLEEPS, AWAKE };

DEVICE int kind_of(Net& net, int i, real u, real y, real b, long long c, int k, int end, bool& opens) {
    real still, new_u, new_y, unused;
    step(net.dynamics, u, 0, 0, 0, 0, still, unused, unused, unused);
    step(net.dynamics, u, 0, 0, (real)(end - k) * (b > 0 ? b : (real)0), 0, new_u, new_y, unused, unused);
    opens = false;
    if (net.all_near || y != 0 || still != u) return AWAKE;
    Silent silent = silent_gates(net, c, k, end);
    if (silent.opens < end && !stays(net, ROW(A)[i])) {
        if (silent.opens < net.hold - 1) return AWAKE;
        opens = true;
    }
    COUNT(NEW_C)[i] = silent.c;
    return !(new_y <= 0) ? SLEEPS : FAR;
}

// Threads that swap rows in columns beside each other (`wake`) use different banks of shared memory.
DEVICE int pitch_of(int near) { return (near + 3) / 8 * 8 + 4; }

struct Chosen { int end, awake, near, room; };

OUTLINED Chosen choose(int k) {
    HERE;
    Chosen found = {k, 0, 0, 0};
    int &awake = found.awake, &near = found.near, &room = found.room;
    const int AT_ONCE = 4;
    real *us = ROW(U), *ys = ROW(Y), *bs = ROW(B);
    long long* cs = COUNT(C);
    unsigned char* opened = TRUTH(OPENED);
    int n = net.n, *sleeping = (int*)res.tile;
    ROLLED for (int end = k + SPELL < net.hold ? k + SPELL : (int)net.hold; end - k >= WORTHWHILE;
                end = k + (end - k) * 3 / 4) {
        bool ends_early = false;
        awake = 0, near = 0;  // `near`: those that sleep, at first
        ROLLED for (int first = 0; first < n; first += AT_ONCE * THREADS) {
            real u[AT_ONCE], y[AT_ONCE], b[AT_ONCE];
            long long c[AT_ONCE];
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                int i = first + e * THREADS + (int)THREAD;
                i = i < n ? i : 0;
                u[e] = us[i], y[e] = ys[i], b[e] = bs[i], c[e] = cs[i];
            }
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                int i = first + e * THREADS + (int)THREAD, kind = FAR;
                bool opens = false;
                if (first + e * THREADS >= n) break;
                if (i < n) {
                    kind = kind_of(net, i, u[e], y[e], b[e], c[e], k, end, opens);
                    if (opens) {
                        Terms terms = terms_of_update(net.rule, 0, ROW(A)[i]);
                        ends_early |= odd_W(terms, ROW(SCALE)[i]) || odd_M(net.floor, terms, ROW(S)[i]);
                    }
                    opened[i] = opens;
                }
                unsigned wake = vote(kind == AWAKE), sleep = vote(kind == SLEEPS), below = (1u << LANE) - 1;
                if (LANE == 0) res.parts[WARP] = popcount(wake) | popcount(sleep) << 16;
                sync();
                int before = 0, all = 0;
                UNROLL for (int warp = 0; warp < WARPS; warp++) {
                    int part = res.parts[warp];
                    before += warp < WARP ? part : 0, all += part;
                }
                int slot = awake + (before & 0xFFFF) + popcount(wake & below);
                int sleeper = near + (before >> 16) + popcount(sleep & below);
                if (kind == AWAKE && slot < SLOTS) res.id[slot] = i;
                if (kind == SLEEPS && sleeper < NEAR) sleeping[sleeper] = i;
                if (i < n) res.row[i] = kind == AWAKE ? slot : kind == SLEEPS ? -2 - sleeper : -1;
                awake += all & 0xFFFF, near += all >> 16;
                sync();
            }
        }
        near += awake;
        if (sync_or(ends_early)) {  // a row has to be rectified: all neurons take the last step
            end -= 1;
            for EACH(i, n)
                if (res.row[i] < 0) COUNT(NEW_C)[i] = silent_gates(net, cs[i], k, end).c, opened[i] = 0;
        }
        if (awake > SLOTS) return {k, 0, 0, 0};
        if (near > NEAR) continue;
        room = TILE / pitch_of(near);
        room = room > SLOTS ? SLOTS : room;
        if (room < awake + SPARE && room < SLOTS && end - k > 2 * WORTHWHILE) continue;
        if (room <= awake) return {k, 0, 0, 0};
        for EACH(i, n)
            if (res.row[i] < -1) res.row[i] = awake - 2 - res.row[i];
        for EACH(sleeper, near - awake) res.id[awake + sleeper] = sleeping[sleeper];
        sync();
        found.end = end;
        return found;
    }
    return {k, 0, 0, 0};
}

// Bring the columns of these slots up to date, and copy them to the tile.
OUTLINED void fetch(int first, int last, int pitch) {
    HERE;
    int row[4];
    read_columns<8>(
        net, OF_M, first, last, [&](int slot) { return res.id[slot]; },
        [&](int first_row) {
            UNROLL for (int e = 0; e < 4; e++) row[e] = first_row + e < net.n ? res.row[first_row + e] : -1;
        },
        [&](int slot, const Four& weights) {
            UNROLL for (int e = 0; e < 4; e++)
                if (row[e] >= 0) res.tile[slot * pitch + row[e]] = weights.of[e];
        },
        [](int, int) {});
    for (int slot = first + (int)THREAD; slot < last; slot += THREADS) res.grown[slot] = 0, res.total[slot] = 0;
}

struct Own {  // of a thread: of the neuron in its slot
    real u, y, before, b, s;   // `before`: y before the last step
    real sum, lowest;          // as in `both`
    long long c;
    int now;                   // where the rates are in `y`; the next ones are in the other half
};

// A thread's share of M̂ while it takes steps: of its team's rows, four columns from GROUP g + 4 t on, where it is the t-th.
template <int USED> struct Weights {
    real of[USED][4][4];
    bool grown;  // has a row?
};

template <int USED> DEVICE void copy_to_registers(Awake& res, Weights<USED>& m, int slots, int pitch) {
    m.grown = false;
    UNROLL for (int g = 0; g < USED; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = GROUP * g + 4 * MINE + e;
            Four some = *(const Four*)(res.tile + (slot < slots ? slot : 0) * pitch + 4 * TEAM);
            UNROLL for (int r = 0; r < 4; r++) m.of[g][e][r] = slot < slots ? some.of[r] : (real)0;
        }
}

template <int USED> DEVICE void copy_to_tile(Awake& res, const Weights<USED>& m, int slots, int pitch) {
    if (!m.grown) return;
    UNROLL for (int g = 0; g < USED; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = GROUP * g + 4 * MINE + e;
            Four some;
            UNROLL for (int r = 0; r < 4; r++) some.of[r] = m.of[g][e][r];
            if (slot < slots) *(Four*)(res.tile + slot * pitch + 4 * TEAM) = some;
        }
}

// M̂ @ y for this thread's slot, over USED groups of columns in registers and, if these are all, those in the tile.
template <int USED> DEVICE real sweep(Awake& res, const Weights<USED>& m, int now, int slots, int pitch, real& ends) {
    const int AT_ONCE = 4;  // groups whose rates are on their way
    const real* y = res.y + now + 4 * MINE;
    Four rates[2][AT_ONCE];
    real part[4] = {0, 0, 0, 0};
    UNROLL for (int g = 0; g < AT_ONCE && g < USED; g++) rates[0][g] = at_once((const Four*)(y + GROUP * g));
    ends = one_at_once(y + SLOTS);
    UNROLL for (int first = 0; first < USED; first += AT_ONCE) {
        UNROLL for (int g = 0; g < AT_ONCE; g++)
            if (first + AT_ONCE + g < USED)
                rates[(first / AT_ONCE + 1) % 2][g] = at_once((const Four*)(y + GROUP * (first + AT_ONCE + g)));
        sync_warp();  // or each rate would be asked for when it is needed
        UNROLL for (int g = 0; g < AT_ONCE; g++)
            if (first + g < USED)
                UNROLL for (int e = 0; e < 4; e++)
                    UNROLL for (int r = 0; r < 4; r++)
                        part[r] = plus(m.of[first + g][e][r], rates[first / AT_ONCE % 2][g].of[e], part[r]);
    }
    if (USED == GROUPS)
        ROLLED for (int slot = COLUMNS; slot < slots; slot += GROUP) {
            Four some = at_once((const Four*)(y + slot)), weights[4];  // past the last slot rates are 0
            UNROLL for (int e = 0; e < 4; e++) {
                int column = slot + 4 * MINE + e < slots ? slot + 4 * MINE + e : 0;
                weights[e] = at_once((const Four*)(res.tile + column * pitch + 4 * TEAM));
            }
            sync_warp();
            UNROLL for (int e = 0; e < 4; e++)
                UNROLL for (int r = 0; r < 4; r++) part[r] = plus(weights[e].of[r], some.of[e], part[r]);
        }
    // Each gives away what belongs to the others' rows: two of four sums, then one of two.
    bool odd = MINE & 1, high = MINE & 2;
    real first = shuffle_xor(odd ? part[0] : part[1], 8), second = shuffle_xor(odd ? part[2] : part[3], 8);
    first += odd ? part[1] : part[0], second += odd ? part[3] : part[2];
    return (high ? second : first) + shuffle_xor(high ? first : second, 16);
}

// M̂ += gains yᵀ for the rows of a warp.
template <int USED> DEVICE void grow(Awake& res, Weights<USED>& m, int now, int slots, int pitch, real gain) {
    const real* y = res.y + now + 4 * MINE;
    real gains[4];
    UNROLL for (int r = 0; r < 4; r++) gains[r] = shuffle(gain, LANE % 8 + 8 * r);
    if (gains[0] == 0 && gains[1] == 0 && gains[2] == 0 && gains[3] == 0) return;
    m.grown = true;
    UNROLL for (int g = 0; g < USED; g++) {
        Four rates = at_once((const Four*)(y + GROUP * g));
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < 4; r++) m.of[g][e][r] = plus(gains[r], rates.of[e], m.of[g][e][r]);
    }
    if (USED == GROUPS)
        ROLLED for (int slot = COLUMNS; slot < slots; slot += GROUP) {
            Four rates = at_once((const Four*)(y + slot));
            UNROLL for (int e = 0; e < 4; e++)
                if (slot + 4 * MINE + e < slots) {
                    Four& weights = *(Four*)(res.tile + (slot + 4 * MINE + e) * pitch + 4 * TEAM);
                    UNROLL for (int r = 0; r < 4; r++) weights.of[r] = plus(gains[r], rates.of[e], weights.of[r]);
                }
        }
}

// The inhibition of the sleepers, by parts: that of the last block, and the least of the next. Each part of the threads
// adds up some of the slots, four at a time; past the last one stands another, with rates of 0.
DEVICE void inhibit_sleepers(Awake& res, int slots, int near, int pitch) {
    int part = THREAD / QUADS, row = THREAD % QUADS * 4;
    if (part >= PARTS || row >= near || row + 3 < slots) return;
    int share = (slots + 4 * PARTS - 1) / (4 * PARTS) * 4, end = (part + 1) * share < slots ? (part + 1) * share : slots;
    Four inhibition = {0, 0, 0, 0}, least = {0, 0, 0, 0};
    ROLLED for (int slot = part * share; slot < end; slot += 4) {
        Four weights[4], both[2];
        UNROLL for (int j = 0; j < 4; j++)
            weights[j] = at_once((const Four*)(res.tile + (slot + j < end ? slot + j : slot) * pitch + row));
        UNROLL for (int j = 0; j < 2; j++) both[j] = at_once((const Four*)(res.both + 2 * slot + 4 * j));
        UNROLL for (int j = 0; j < 4; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                inhibition.of[e] = plus(weights[j].of[e], both[j / 2].of[j % 2 * 2], inhibition.of[e]);
                least.of[e] = plus(weights[j].of[e], both[j / 2].of[j % 2 * 2 + 1], least.of[e]);
            }
    }
    *(Four*)(res.inhibition[part] + row) = inhibition, *(Four*)(res.least[part] + row) = least;
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`unsafe`); the bits of `found` say for which lengths this thread's are among them.
DEVICE void look_after(Awake& res, int slots, int near, int steps, unsigned* found) {
    UNROLL for (int look = 0; look < LOOKS; look++) {
        int row = look * THREADS + THREAD;
        found[look] = 0;
        if (row >= slots && row < near) {
            real inhibition = 0, least = 0, u = res.u[row], b = res.b[row], s = res.s[row], new_u, new_y, unused;
            UNROLL for (int part = 0; part < PARTS; part++)
                inhibition += res.inhibition[part][row], least += res.least[part][row];
            step(res.dynamics, u, 0, 0, (real)steps * b - s * inhibition, 0, new_u, new_y, unused, unused);
            if (steps) res.u[row] = u = new_u;
            real drive = b - s * least;
            drive = drive <= 0 ? (real)0 : drive;
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                step(res.dynamics, u, 0, 0, (real)(LONGEST >> l) * drive, 0, new_u, new_y, unused, unused);
                found[look] |= (unsigned)!(new_y <= 0) << l;
            }
        }
        FourIds counts = {{0, 0, 0, 0}};
        UNROLL for (int l = 0; l < LENGTHS; l++) counts.of[l / 2] |= popcount(vote(found[look] >> l & 1)) << l % 2 * 16;
        if (LANE == 0) res.unsafe[look * WARPS + WARP] = counts;
    }
}

// Both, for so many steps since the last time.
OUTLINED unsigned check(int slots, int near, int pitch, int steps) {
    HERE;
    unsigned found[LOOKS], all = 0;
    inhibit_sleepers(res, slots, near, pitch);
    sync();
    look_after(res, slots, near, steps, found);
    UNROLL for (int look = 0; look < LOOKS; look++) all |= found[look] << LENGTHS * look;
    sync();
    return all;
}

template <typename T> DEVICE void swap_two(T& one, T& other) {
    T first = one;
    one = other, other = first;
}

// Give the next slots to those who wake, whose rows are listed in ascending order: they change places with the sleepers
// in these rows. What they feel from other slots is in the tile; what they do to others is fetched.
OUTLINED void wake(Own& own, int slots, int waking, int pitch, int start, int k) {
    HERE;
    for EACH(slot, slots)
        ROLLED for (int w = 0; w < waking; w++) {
            real* column = res.tile + slot * pitch;
            swap_two(column[slots + w], column[res.woken[w]]);
        }
    int array = THREADS - 1 - (int)THREAD;
    if (array < 4)
        ROLLED for (int w = 0; w < waking; w++) {
            int row = res.woken[w];
            if (array == 0) {
                swap_two(res.id[slots + w], res.id[row]);
                res.row[res.id[slots + w]] = slots + w, res.row[res.id[row]] = row;
            }
            if (array == 1) swap_two(res.u[slots + w], res.u[row]);
            if (array == 2) swap_two(res.b[slots + w], res.b[row]);
            if (array == 3) swap_two(res.s[slots + w], res.s[row]);
        }
    sync();
    int q = SLOT;
    long long c = 0;
    bool wakes = q >= slots && q < slots + waking;
    if (wakes) {
        int i = res.id[q];
        own.u = res.u[q], own.y = own.before = 0, own.b = res.b[q], own.s = res.s[q], c = COUNT(C)[i];
        TRUTH(OPENED)[i] = 0;
        res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    }
    fetch(slots, slots + waking, pitch);
    if (wakes) own.c = silent_gates(net, c, start, k).c;
    sync();
}

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Awake& res, const Own& own, bool opened, int k, long long t, int slots) {
    bool writes = SLOT < slots;
    if (net.trace_y && writes) global(net.trace_y)[t * net.n + res.id[SLOT]] = own.y;
    if (net.trace_burst && writes) global(net.trace_burst)[t * net.n + res.id[SLOT]] = opened;
    int more_than_0 = popcount(vote(writes && own.y > 0)), not_0 = popcount(vote(writes && own.y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// Take so many steps from k on, or fewer: up to the first at which a rate falls below its floor, or a row has to be
// rectified. Gives the step that was reached. Only warps that have slots do this.
struct Block {
    int k, left, slots, pitch, pixels;
    long long hold_start;
};

template <bool TRACED, int USED> OUTLINED int take_steps(Own& its_own, const Block& block) {
    HERE;
    Own own = its_own;
    int k = block.k, left = block.left, slots = block.slots, pitch = block.pitch, pixels = block.pixels;
    long long hold_start = block.hold_start;
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], unused;
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = res.schedule[j];
    int q = SLOT, hold = net.hold, warps = (slots + 32 - 1) / 32;
    bool is_one = q < slots;
    Weights<USED> m;
    copy_to_registers(res, m, slots, pitch);
    do {
        // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        real ends, beta, new_u, new_y, gain = 0;
        long long new_c;
        real felt = sweep(res, m, own.now, slots, pitch, ends);
        if (ends != 0) break;
        step(dynamics, own.u, 0, 0, own.b - own.s * felt, 0, new_u, new_y, unused, unused);
        new_y = is_one ? new_y : (real)0;
        real* next = res.y + (RATES - own.now);
        if (is_one) next[q] = new_y;
        gate(schedule, new_y, 0, own.c, k, hold, beta, new_c);
        own.sum += own.y, own.before = own.y, own.u = new_u, own.y = new_y, own.c = new_c;
        bool opened = is_one && beta != 0, attention = is_one && !(new_y >= own.lowest), changed = false;
        bool any_opened = vote_any(opened);
        Terms terms;
        if (any_opened) {
            // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself when all rates are known
            if (opened) {
                terms = terms_of_update(res.rule, new_y, res.a[q]);
                changed = !(odd_W(terms, res.scale[q]) || odd_M(net.floor, terms, own.s));
                if (changed) {
                    res.a[q] = terms.a;
                    res.scale[q] *= terms.keep_w;
                    res.shift[q] = terms.keep_w * res.shift[q] + terms.gain;
                    own.b = terms.keep_w * own.b + terms.gain * net.x_x;
                    own.s *= terms.keep_m;
                    gain = terms.gain * reciprocal(own.s);
                    if (gain != 0) TRUTH(GROWN)[res.id[q]] = res.grown[q] = 1;
                } else
                    TRUTH(OPENED)[res.id[q]] = 1, res.odd = 1, attention = true;  // left to `update`
            }
        }
        if (attention)
            UNROLL for (int j = 0; j < 4; j++) next[SLOTS + 4 * j] = 1;
        if (TRACED) trace(net, res, own, opened, k, hold_start + k, slots);
        sync_first(warps);
        if (TRACED && changed && net.trace_updates)
            add_to(&global(net.trace_updates)[hold_start + k],
                   synapses_changed(net, terms, own.y, pixels, (int)res.shared.active[k % 3]));
        own.now = RATES - own.now;
        if (any_opened) grow(res, m, own.now, slots, pitch, gain);
        k++;
    } while (--left);
    copy_to_tile(res, m, slots, pitch);
    its_own = own;
    return k;
}

// Put the weights of rows that have grown back where they belong.
OUTLINED void store(int slots, int pitch) {
    HERE;
    for EACH(slot, slots) {
        real* column = global(net.P) + (size_t)res.id[slot] * net.stride;
        ROLLED for (int row = 0; row < slots; row++)
            if (res.grown[row]) column[res.id[row]] = res.tile[slot * pitch + row];
    }
}

// Far neurons take one step with the summed drive since step `start`. Each thread has four rows of all neurons, and where
// there are enough threads, they share the slots.
OUTLINED void move_far(int slots, int start, int k, int end, bool odd, long long t) {
    HERE;
    const int AT_ONCE = 8;
    int n_4 = ((int)net.n + 3) / 4, sharing = sharing_columns(net), stride = net.stride;
    ROLLED for (int r = THREAD; r < sharing * n_4; r += THREADS) {
        int first_row = r % n_4 * 4;
        const real* P = global(net.P) + first_row;
        Four sum = {0, 0, 0, 0};
        ROLLED for (int first = r / n_4; first < slots; first += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                int slot = first + j * sharing < slots ? first + j * sharing : first;
                weights[j] = streamed((const Four*)(P + res.id[slot] * stride));
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                real total = first + j * sharing < slots ? res.total[first + j * sharing] : (real)0;
                UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights[j].of[e], total, sum.of[e]);
            }
        }
        *(Four*)(ROW(r < n_4 ? INHIBITION : TEAMS + r / n_4 - 1) + first_row) = sum;
    }
    sync();
    for EACH(i, net.n)
        if (res.row[i] < 0) {
            move_silent(net, i, k - start, add_teams(net, i, sharing));
            close_silent(net, i, start, k, end, odd, t);
        }
    sync();
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if it does not
// pay. `again` says that it may do so from there on; else all neurons take some steps.
DEVICE int run_few(Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    Chosen chosen = choose(k);
    int slots = chosen.awake, near = chosen.near, room = chosen.room, end = chosen.end, pitch = pitch_of(near);
    int start = k, hold = net.hold;
    SPENT(ON_CHOOSING)
    again = false;
    if (end == k) return k;
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;

    // What the slots and the sleepers begin with.
    int q = SLOT, i = q < slots ? res.id[q] : 0;
    Own own;
    own.u = ROW(U)[i], own.y = own.before = q < slots ? ROW(Y)[i] : (real)0, own.b = ROW(B)[i], own.s = ROW(S)[i];
    own.c = COUNT(C)[i], own.sum = own.lowest = 0, own.now = 0;
    for EACH(j, 2 * RATES) res.y[j] = 0;
    for EACH(j, DYNAMICS_CONSTANTS) res.dynamics[j] = net.dynamics[j];
    for EACH(j, SCHEDULE_CONSTANTS) res.schedule[j] = net.schedule[j];
    for EACH(j, RULE_CONSTANTS) res.rule[j] = net.rule[j];
    if (THREAD == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
    for EACH(slot, slots) {
        int j = res.id[slot];
        res.a[slot] = ROW(A)[j], res.scale[slot] = ROW(SCALE)[j], res.shift[slot] = ROW(SHIFT)[j];
        ROW(ALL_RATES)[j] -= ROW(Y)[j];  // `total` is of the rates before each step
    }
    for EACH(row, near) {
        int j = res.id[row];
        res.u[row] = ROW(U)[j], res.b[row] = ROW(B)[j], res.s[row] = ROW(S)[j];
    }
    fetch(0, slots, pitch);
    sync();
    if (q < slots) res.y[q] = own.y;
    SPENT(ON_LOADING)

    bool odd = false;  // has a row to be rectified?
    int moved = k;
    while (true) {
        real fall = own.y < own.before ? FORESEEN * (own.y - own.before) : (real)0;
        own.lowest = (real)0.95 * own.y + (real)1.5 * fall;
        own.lowest = own.lowest > 0 ? own.lowest : (real)0;
        if (q < SLOTS) {
            res.both[2 * q] = own.sum, res.both[2 * q + 1] = own.lowest;
            if (q < slots) res.total[q] += own.sum;
        }
        own.sum = 0;
        sync();
        odd = res.odd;
        for EACH(j, 2 * GROUP) res.y[j / GROUP * RATES + SLOTS + j % GROUP] = 0;
        unsigned found = check(slots, near, pitch, k - moved);
        moved = k;
        SPENT(ON_SLEEPERS)
        if (k == end || odd) break;
        int waking[LENGTHS] = {0, 0, 0, 0, 0}, before[LOOKS][LENGTHS];
        UNROLL for (int w = 0; w < LOOKS * WARPS; w++) {
            FourIds counts = res.unsafe[w];
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                if (w % WARPS == WARP) before[w / WARPS][l] = waking[l];
                waking[l] += counts.of[l / 2] >> l % 2 * 16 & 0xFFFF;
            }
        }
        int length = LENGTHS - 1, woken = waking[LENGTHS - 1];
        UNROLL for (int l = LENGTHS - 2; l > 0; l--)
            if (waking[l] <= FEW_WAKE || waking[l] == waking[LENGTHS - 1]) length = l, woken = waking[l];
        if (length == 1 && waking[0] == waking[1]) length = 0;  // no one else has to be woken for the longest block
        if (slots + woken > room) break;
        if (woken) {
            UNROLL for (int look = 0; look < LOOKS; look++) {
                bool wakes = found >> (LENGTHS * look + length) & 1;
                int place = popcount(vote(wakes) & ((1u << LANE) - 1));
                UNROLL for (int l = 0; l < LENGTHS; l++) place += l == length ? before[look][l] : 0;
                if (wakes) res.woken[place] = look * THREADS + THREAD;
            }
            sync();
            wake(own, slots, woken, pitch, start, k);
            slots += woken;
        }
        SPENT(ON_WAKING)
        int left = end - k < LONGEST >> length ? end - k : LONGEST >> length, before_them = k;
        bool takes_part = slots > WARP * 32;
        if (takes_part) {
            Block block = {k, left, slots, pitch, pixels, hold_start};
            k = traced                      ? take_steps<true, GROUPS>(own, block)
                : slots <= GROUP * FEWER(3) ? take_steps<false, FEWER(3)>(own, block)
                : slots <= GROUP * FEWER(2) ? take_steps<false, FEWER(2)>(own, block)
                : slots <= GROUP * FEWER(1) ? take_steps<false, FEWER(1)>(own, block)
                                            : take_steps<false, GROUPS>(own, block);
            if (THREAD == 0) res.reached = k;
        } else if (slots == 0 && THREAD == 0)
            res.reached = k + left;
        sync();
        k = res.reached;
        if (!takes_part && (k - before_them) % 2) own.now = RATES - own.now;
        SPENT(ON_STEPS)
    }
    if (q < slots) {
        i = res.id[q];
        ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(B)[i] = own.b, ROW(S)[i] = own.s, COUNT(C)[i] = own.c;
        ROW(A)[i] = res.a[q], ROW(SCALE)[i] = res.scale[q], ROW(SHIFT)[i] = res.shift[q];
        ROW(ALL_RATES)[i] += res.total[q] + own.y;
    }
    for (int row = slots + (int)THREAD; row < near; row += THREADS) {
        int j = res.id[row];
        ROW(U)[j] = res.u[row];
        close_silent(net, j, start, k, end, odd, hold_start + k - 1);
    }
    store(slots, pitch);
    SPENT(ON_STORING)
    move_far(slots, start, k, end, odd, hold_start + k - 1);
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        refresh_all(net, res.shared);
        int active = list_active(net, res.shared);
        update(net, x, pixels, active, hold_start + k - 1);
    }
    SPENT(ON_FAR)
    again = !odd && k > start && k < hold - 1;
    return k;
}
