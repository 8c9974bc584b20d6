// Awake neurons apart: those that are active or may soon be.
//
// Near neurons, those that might become active within a spell of some hundred steps, have a row each of a tile in shared
// memory. The awake ones among them come first, and have a slot each: a row, and a column of the weights from it to all
// near ones. Four threads, a team, share ROWS rows: each has a quarter of the columns, and of the first COLUMNS of these
// a copy in registers. So a rate that is read serves several rows, and a step is a sweep over the columns, some shuffles,
// one barrier of the warps that have slots, and little else.
//
// The other near neurons sleep. They are looked after block by block: from a floor under each rate follows a bound on
// their drives, and those that it does not keep silent for the length of the block are woken beforehand. A block ends
// early when a rate falls below its floor. So what is computed is exact, and never undone. Far neurons stay silent up to
// the end of the spell, even if nothing inhibits them, and take one step with the summed drive then.
#define TEAM (WARP * 8 + LANE % 8)          // of this thread
#define MINE (LANE / 8)                     // its number in the team
#define SLOT (ROWS * TEAM + MINE % ROWS)    // it follows the neuron in this slot,
#define FIRST (MINE < ROWS)                 // and writes down what becomes of it: where ROWS is 2, two threads follow it
#define GROUPS (COLUMNS / 16)               // of columns, four for each of four threads, in registers
#define FEWER (GROUPS < 5 ? GROUPS : 4)     // of them are often enough
#define SLOTS_OF_WARP (8 * ROWS)
#define QUADS ((NEAR / 4 + 31) / 32 * 32)   // threads that look at all near rows, four each: whole warps
#define PARTS (THREADS / QUADS)             // such teams, which share the slots
#define LOOKS ((NEAR + THREADS - 1) / THREADS)  // rows that a thread looks after
#define LENGTHS 4                           // of a block: 32, 16, 8 or 4 steps
#define LONGEST 32
#define FEW_WAKE 4                          // a block is so long that no more than these have to be woken, if that helps

struct alignas(ROWS * sizeof(real) < 16 ? ROWS * sizeof(real) : 16) Some { real of[ROWS]; };

struct Awake {  // in shared memory
    Shared shared;
    alignas(16) real y[2][SLOTS + 16];          // rates in the slots, before and after a step; and whether the block ends
    alignas(16) real both[2 * SLOTS];           // per slot: rates added up since the block began, and the floor under it
    real total[SLOTS];                          // rates added up since the spell began
    real a[SLOTS], scale[SLOTS], shift[SLOTS];
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    int id[NEAR];                               // which neuron has a row
    real u[NEAR], b[NEAR], s[NEAR];             // of those that sleep
    alignas(16) real inhibition[PARTS][NEAR], least[PARTS][NEAR];
    FourIds unsafe[LOOKS * WARPS];              // sleepers that might become active, for each length of a block
    int since[SLOTS];                           // up to which hold a column of M was up to date
    int woken[SLOTS];                           // rows of those who wake
    unsigned char grown[SLOTS];                 // has the row grown in this spell?
    int reached, odd;                           // the step that was; has a row to be rectified?
    alignas(16) real tile[SLOTS * NEAR];        // m̂_ij for row i and slot j at j * NEAR + i
};
typedef Awake Memory;

// Which neurons are far, which sleep and which are awake, from step k on: AWAKE are those that are active or whose gates
// may open before the last step; far are those that stay silent up to the end whatever happens. Gives that end; k if
// there are too many of them. Those near are listed in `id`, the awake ones first. New c's of the silent ones are left in
// NEW_C; those whose gates open at the hold's last step alone, as with a discrete schedule, are OPENED.
enum { FAR, SLEEPS, AWAKE };

DEVICE int choose(Net& net, Awake& res, int k, int& awake, int& near) {
    real *u = ROW(U), *y = ROW(Y), *a = ROW(A), *b = ROW(B);
    long long *c = COUNT(C), *new_c = COUNT(NEW_C);
    unsigned char *kinds = TRUTH(NEAR_OR_FAR), *opened = TRUTH(OPENED);
    ROLLED for (int end = k + SPELL < net.hold ? k + SPELL : (int)net.hold; end - k >= WORTHWHILE;
                end = k + (end - k) * 3 / 4) {
        bool ends_early = false;
        for EACH(i, net.n) {
            real still, new_u, new_y, unused;
            step(net.dynamics, u[i], 0, 0, 0, 0, still, unused, unused, unused);
            step(net.dynamics, u[i], 0, 0, (real)(end - k) * (b[i] > 0 ? b[i] : (real)0), 0, new_u, new_y, unused, unused);
            int kind = net.all_near || y[i] != 0 || still != u[i] ? AWAKE : !(new_y <= 0) ? SLEEPS : FAR;
            bool opens = false;
            if (kind != AWAKE) {
                Silent silent = silent_gates(net, c[i], k, end);
                new_c[i] = silent.c;
                opens = silent.opens < end && !stays(net, a[i]);
                if (opens && silent.opens < net.hold - 1) kind = AWAKE;
            }
            opens = opens && kind != AWAKE;
            if (opens) {
                Terms terms = terms_of_update(net.rule, 0, a[i]);
                ends_early |= odd_W(terms, ROW(SCALE)[i]) || odd_M(net.floor, terms, ROW(S)[i]);
            }
            kinds[i] = kind, opened[i] = opens;
        }
        if (sync_or(ends_early)) {  // a row has to be rectified: all neurons take the last step
            end -= 1;
            for EACH(i, net.n)
                if (kinds[i] != AWAKE) new_c[i] = silent_gates(net, c[i], k, end).c, opened[i] = 0;
        }
        awake = list_where(res.shared, net.n, LIST(LISTED), [=](int i) { return kinds[i] == AWAKE; });
        if (awake > SLOTS) return k;
        near = awake + list_where(res.shared, net.n, LIST(ACTIVE), [=](int i) { return kinds[i] == SLEEPS; });
        if (near > NEAR) continue;
        for EACH(row, near) res.id[row] = row < awake ? LIST(LISTED)[row] : LIST(ACTIVE)[row - awake];
        sync();
        return end;
    }
    return k;
}

// Copy the columns of these slots into the tile, brought up to date.
template <int AT_ONCE> DEVICE void fetch(Net& net, Awake& res, int first, int last, int near) {
    int stride = net.stride, holds = net.holds;
    ROLLED for (int row = THREAD; row < near; row += THREADS) {
        int i = res.id[row];
        Missed missed = missed_scales(net, 0, i);
        ROLLED for (int slot = first; slot < last; slot += AT_ONCE) {
            real weight[AT_ONCE];
            int since[AT_ONCE];
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                int column = res.id[slot + e < last ? slot + e : first];
                weight[e] = global(net.P)[(size_t)column * stride + i], since[e] = LIST(FRESH)[column];
            }
            UNROLL for (int e = 0; e < AT_ONCE; e++) {
                if (since[e] < holds) weight[e] = up_to_date(weight[e], missed, since[e], holds);
                if (slot + e < last) res.tile[(slot + e) * NEAR + row] = weight[e];
            }
        }
    }
    for (int slot = first + (int)THREAD; slot < last; slot += THREADS) {
        res.since[slot] = LIST(FRESH)[res.id[slot]], res.grown[slot] = 0, res.total[slot] = 0;
    }
}

struct Own {  // of a thread: of the neuron in its slot, but for m
    real m[GROUPS][4][ROWS];   // columns 16 g + 4 t to 16 g + 4 t + 3 of the team's rows, of which it is the t-th thread
    real u, y, before, b, s;   // `before`: y before the last step
    real sum, lowest;          // as in `both`
    real gain;                 // by how much its row is still to grow, per rate
    long long c;
    real *now, *next;          // where rates are read and written: from its first column on, and its own
    int apart;                 // how far the next step's are from these
    bool growing, grown;       // is a row of this warp still to grow; has one of the team since it was copied?
};

DEVICE void turn_to_next(Own& own) { own.now += own.apart, own.next -= own.apart, own.apart = -own.apart; }

DEVICE void copy_to_registers(Awake& res, Own& own, int slots) {
    if (slots <= WARP * SLOTS_OF_WARP) return;
    own.grown = false;
    UNROLL for (int g = 0; g < GROUPS; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = 16 * g + 4 * MINE + e;
            Some some = *(const Some*)(res.tile + (slot < slots ? slot : 0) * NEAR + ROWS * TEAM);
            UNROLL for (int r = 0; r < ROWS; r++) own.m[g][e][r] = slot < slots ? some.of[r] : (real)0;
        }
}

DEVICE void copy_to_tile(Awake& res, Own& own, int slots) {
    if (slots <= WARP * SLOTS_OF_WARP || !own.grown) return;
    UNROLL for (int g = 0; g < GROUPS; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = 16 * g + 4 * MINE + e;
            Some some;
            UNROLL for (int r = 0; r < ROWS; r++) some.of[r] = own.m[g][e][r];
            if (slot < slots) *(Some*)(res.tile + slot * NEAR + ROWS * TEAM) = some;
        }
}

// M̂ @ y for this thread's slot, over USED groups of columns in registers and, if these are all, those in the tile; where
// the team's rows GROW, M̂ += gains yᵀ before that.
template <bool GROW, int USED> DEVICE real sweep(Awake& res, Own& own, int slots, real& ends) {
    const int CHAINS = 4 / ROWS;  // sums per row, lest each addition waits for the one before
    Four rates[USED > 0 ? USED : 1];
    real part[ROWS][CHAINS], gains[ROWS], *y = own.now;
    UNROLL for (int g = 0; g < USED; g++) rates[g] = at_once((const Four*)y + 4 * g);
    ends = one_at_once(y + SLOTS);
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int chain = 0; chain < CHAINS; chain++) part[r][chain] = 0;
    if (GROW) {
        UNROLL for (int r = 0; r < ROWS; r++) {
            gains[r] = shuffle(own.gain, LANE % 8 + 8 * r);
            own.grown |= gains[r] != 0;
        }
        own.gain = 0;
    }
    sync_warp();  // or each rate would be asked for when it is needed
    UNROLL for (int g = 0; g < USED; g++)
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < ROWS; r++) {
                real& weight = own.m[g][e][r];
                if (GROW) weight = plus(gains[r], rates[g].of[e], weight);
                part[r][e % CHAINS] = plus(weight, rates[g].of[e], part[r][e % CHAINS]);
            }
    if (USED == GROUPS)
        ROLLED for (int g = GROUPS; 16 * g < slots; g++) {
            Four some = at_once((const Four*)y + 4 * g);
            Some* at = (Some*)(res.tile + (16 * g + 4 * MINE) * NEAR + ROWS * TEAM);
            Some weights[4];
            UNROLL for (int e = 0; e < 4; e++) read_rows(weights[e].of, ((const Some*)((real*)at + e * NEAR))->of);
            UNROLL for (int e = 0; e < 4; e++) {
                UNROLL for (int r = 0; r < ROWS; r++) {
                    if (GROW) weights[e].of[r] = plus(gains[r], some.of[e], weights[e].of[r]);
                    part[r][e % CHAINS] = plus(weights[e].of[r], some.of[e], part[r][e % CHAINS]);
                }
                if (GROW) *(Some*)((real*)at + e * NEAR) = weights[e];
            }
        }
    // Each gives away what belongs to the others' rows: half of the sums, and half of those.
    bool odd = MINE & 1, high = MINE & 2;
    real row[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) row[r] = CHAINS == 2 ? part[r][0] + part[r][CHAINS - 1] : part[r][0];
    real first = (odd ? row[1] : row[0]) + shuffle_xor(odd ? row[0] : row[1], 8);
    if (ROWS == 2) return first + shuffle_xor(first, 16);
    real second = (odd ? row[ROWS - 1] : row[ROWS - 2]) + shuffle_xor(odd ? row[ROWS - 2] : row[ROWS - 1], 8);
    return (high ? second : first) + shuffle_xor(high ? first : second, 16);
}

// The inhibition of the sleepers, by parts: that of the last block, and the least of the next. Each part of the threads
// adds up some of the slots, four at a time; past the last one stands another, with rates of 0.
DEVICE void inhibit_sleepers(Awake& res, int slots, int near) {
    int part = THREAD / QUADS, row = THREAD % QUADS * 4;
    if (part >= PARTS || row >= near || row + 3 < slots) return;
    int share = (slots + 4 * PARTS - 1) / (4 * PARTS) * 4, end = (part + 1) * share < slots ? (part + 1) * share : slots;
    Four inhibition = {0, 0, 0, 0}, least = {0, 0, 0, 0};
    ROLLED for (int slot = part * share; slot < end; slot += 4) {
        Four weights[4], both[2];
        UNROLL for (int j = 0; j < 4; j++)
            weights[j] = at_once((const Four*)(res.tile + (slot + j < end ? slot + j : slot) * NEAR + row));
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
        FourIds counts;
        UNROLL for (int l = 0; l < LENGTHS; l++) counts.of[l] = popcount(vote(found[look] >> l & 1));
        if (LANE == 0) res.unsafe[look * WARPS + WARP] = counts;
    }
}

template <typename T> DEVICE void swap_two(T& one, T& other) {
    T first = one;
    one = other, other = first;
}

// Give the next slots to those who wake, whose rows are listed in ascending order: they change places with the sleepers
// in these rows. What they feel from other slots is in the tile; what they do to others is fetched.
DEVICE void wake(Net& net, Awake& res, Own& own, int slots, int waking, int near, int start, int k) {
    for EACH(slot, slots)
        ROLLED for (int w = 0; w < waking; w++) {
            real* column = res.tile + slot * NEAR;
            swap_two(column[slots + w], column[res.woken[w]]);
        }
    int array = THREADS - 1 - (int)THREAD;
    if (array < 4)
        ROLLED for (int w = 0; w < waking; w++) {
            int row = res.woken[w];
            if (array == 0) swap_two(res.id[slots + w], res.id[row]);
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
        if (FIRST) {
            TRUTH(OPENED)[i] = 0;
            res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
        }
    }
    ROLLED for (int first = slots; first < slots + waking; first += 4)
        fetch<4>(net, res, first, first + 4 < slots + waking ? first + 4 : slots + waking, near);
    if (wakes) own.c = silent_gates(net, c, start, k).c;
    sync();
}

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Awake& res, const Own& own, bool opened, int k, long long t, int slots) {
    bool writes = FIRST && SLOT < slots;
    if (net.trace_y && writes) global(net.trace_y)[t * net.n + res.id[SLOT]] = own.y;
    if (net.trace_burst && writes) global(net.trace_burst)[t * net.n + res.id[SLOT]] = opened;
    int more_than_0 = popcount(vote(writes && own.y > 0)), not_0 = popcount(vote(writes && own.y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// Take so many steps from k on, or fewer: up to the first at which a rate falls below its floor, or a row has to be
// rectified. Gives the step that was reached. Only warps that have slots do this.
template <bool TRACED, int USED>
DEVICE int take_steps(Net& net, Awake& res, Own& own, int k, int left, int slots, int pixels, long long hold_start) {
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], unused;
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = res.schedule[j];
    int q = SLOT, hold = net.hold, warps = (slots + SLOTS_OF_WARP - 1) / SLOTS_OF_WARP;
    bool is_one = q < slots;
    do {
        // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        real ends, beta, new_u, new_y;
        long long new_c;
        real felt = own.growing ? sweep<true, USED>(res, own, slots, ends) : sweep<false, USED>(res, own, slots, ends);
        own.growing = false;
        if (ends != 0) break;
        step(dynamics, own.u, 0, 0, own.b - own.s * felt, 0, new_u, new_y, unused, unused);
        new_y = is_one ? new_y : (real)0;
        if (is_one && FIRST) *own.next = new_y;
        gate(schedule, new_y, 0, own.c, k, hold, beta, new_c);
        own.sum += own.y, own.before = own.y, own.u = new_u, own.y = new_y, own.c = new_c;
        bool opened = is_one && beta != 0, attention = is_one && !(new_y >= own.lowest), changed = false;
        Terms terms;
        own.growing = vote_any(opened);
        if (own.growing) {
            // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself when it is read again
            real a = is_one ? res.a[q] : (real)0, scale = is_one ? res.scale[q] : (real)1;
            sync_warp();  // the other thread of this slot has read them, too
            if (opened) {
                terms = terms_of_update(res.rule, new_y, a);
                changed = !(odd_W(terms, scale) || odd_M(net.floor, terms, own.s));
                if (changed) {
                    if (FIRST)
                        res.a[q] = terms.a, res.scale[q] = scale * terms.keep_w,
                        res.shift[q] = terms.keep_w * res.shift[q] + terms.gain;
                    own.b = terms.keep_w * own.b + terms.gain * net.x_x;
                    own.s *= terms.keep_m;
                    own.gain = terms.gain * reciprocal(own.s);
                    if (own.gain != 0) TRUTH(GROWN)[res.id[q]] = res.grown[q] = 1;
                } else
                    TRUTH(OPENED)[res.id[q]] = 1, res.odd = 1, attention = true;  // left to `update`
            }
        }
        if (attention)
            UNROLL for (int j = 0; j < 4; j++) own.next[SLOTS - q + 4 * j] = 1;
        if (TRACED) trace(net, res, own, opened, k, hold_start + k, slots);
        sync_first(warps);
        if (TRACED && changed && FIRST && net.trace_updates)
            add_to(&global(net.trace_updates)[hold_start + k],
                   synapses_changed(net, terms, own.y, pixels, (int)res.shared.active[k % 3]));
        turn_to_next(own);
        k++;
    } while (--left);
    return k;
}

// Put the weights from the slots back where they belong, brought up to date; far neurons take one step with the summed
// drive since step `start`.
DEVICE void store(Net& net, Awake& res, int slots, int near, int start, int k, int end, bool odd, long long t) {
    const int AT_ONCE = 8;
    int stride = net.stride, holds = net.holds;
    ROLLED for (int row = THREAD; row < near; row += THREADS) {
        real* to = global(net.P) + res.id[row];
        bool grown = row < slots && res.grown[row];
        ROLLED for (int slot = 0; slot < slots; slot++)
            if (grown || res.since[slot] < holds) to[(size_t)res.id[slot] * stride] = res.tile[slot * NEAR + row];
    }
    SPENT(ON_STORING)
    const unsigned char* kinds = TRUTH(NEAR_OR_FAR);
    ROLLED for EACH(i, net.n) {
        if (kinds[i] != FAR) continue;
        Missed missed = missed_scales(net, 0, i);
        real sum = 0;
        ROLLED for (int slot = 0; slot < slots; slot += AT_ONCE) {
            real weight[AT_ONCE];
            UNROLL for (int e = 0; e < AT_ONCE; e++)
                weight[e] = global(net.P)[(size_t)res.id[slot + e < slots ? slot + e : slot] * stride + i];
            UNROLL for (int e = 0; e < AT_ONCE; e++)
                if (slot + e < slots) {
                    int since = res.since[slot + e];
                    if (since < holds) {
                        weight[e] = up_to_date(weight[e], missed, since, holds);
                        global(net.P)[(size_t)res.id[slot + e] * stride + i] = weight[e];
                    }
                    sum = plus(weight[e], res.total[slot + e], sum);
                }
        }
        move_silent(net, i, k - start, sum);
        close_silent(net, i, start, k, end, odd, t);
    }
    sync();
    for EACH(slot, slots) LIST(FRESH)[res.id[slot]] = holds;
    sync();
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if it does not
// pay. `again` says that it may do so from there on; else all neurons take some steps.
DEVICE int run_few(Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    int slots, near, start = k, hold = net.hold, end = choose(net, res, k, slots, near);
    SPENT(ON_CHOOSING)
    again = false;
    if (end == k) return k;
    real unused;
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;

    // What the slots and the sleepers begin with.
    int q = SLOT, i = q < slots ? res.id[q] : 0;
    Own own;
    own.u = ROW(U)[i], own.y = own.before = q < slots ? ROW(Y)[i] : (real)0, own.b = ROW(B)[i], own.s = ROW(S)[i];
    own.c = COUNT(C)[i], own.sum = own.gain = own.lowest = 0, own.growing = own.grown = false;
    own.now = res.y[0] + 4 * MINE, own.next = res.y[1] + q, own.apart = SLOTS + 16;
    for EACH(j, SLOTS + 16) res.y[0][j] = res.y[1][j] = 0;
    for EACH(j, DYNAMICS_CONSTANTS) res.dynamics[j] = net.dynamics[j];
    for EACH(j, SCHEDULE_CONSTANTS) res.schedule[j] = net.schedule[j];
    for EACH(j, RULE_CONSTANTS) res.rule[j] = net.rule[j];
    if (THREAD == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
    for EACH(slot, slots) {
        int j = res.id[slot];
        res.a[slot] = ROW(A)[j], res.scale[slot] = ROW(SCALE)[j], res.shift[slot] = ROW(SHIFT)[j];
    }
    for EACH(row, near) {
        int j = res.id[row];
        res.u[row] = ROW(U)[j], res.b[row] = ROW(B)[j], res.s[row] = ROW(S)[j];
    }
    fetch<16>(net, res, 0, slots, near);
    if (COLUMNS < SLOTS)  // they are read in groups
        for EACH(row, SLOTS)
            for (int slot = slots > COLUMNS ? slots : COLUMNS; slot < SLOTS; slot++) res.tile[slot * NEAR + row] = 0;
    sync();
    if (q < slots && FIRST) res.y[0][q] = own.y;
    copy_to_registers(res, own, slots);
    SPENT(ON_LOADING)

    bool odd = false;  // has a row to be rectified?
    int moved = k;
    while (true) {
        real fall = own.y < own.before ? LONGEST * (own.y - own.before) : (real)0;
        own.lowest = (real)0.95 * own.y + (real)1.5 * fall;
        own.lowest = own.lowest > 0 ? own.lowest : (real)0;
        if (FIRST && q < SLOTS) {
            res.both[2 * q] = own.sum, res.both[2 * q + 1] = own.lowest;
            if (q < slots) res.total[q] += own.sum;
        }
        own.sum = 0;
        sync();
        odd = res.odd;
        if (THREAD < 32) res.y[THREAD / 16][SLOTS + THREAD % 16] = 0;
        inhibit_sleepers(res, slots, near);
        sync();
        unsigned found[LOOKS];
        look_after(res, slots, near, k - moved, found);
        moved = k;
        sync();
        SPENT(ON_SLEEPERS)
        if (k == end || odd) break;
        int waking[LENGTHS] = {0, 0, 0, 0}, before[LOOKS][LENGTHS];
        UNROLL for (int w = 0; w < LOOKS * WARPS; w++) {
            FourIds counts = res.unsafe[w];
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                if (w % WARPS == WARP) before[w / WARPS][l] = waking[l];
                waking[l] += counts.of[l];
            }
        }
        int length = LENGTHS - 1, woken = waking[LENGTHS - 1];
        UNROLL for (int l = LENGTHS - 2; l >= 0; l--)
            if (waking[l] <= FEW_WAKE || waking[l] == waking[LENGTHS - 1]) length = l, woken = waking[l];
        if (slots + woken > SLOTS) break;
        if (woken) {
            UNROLL for (int look = 0; look < LOOKS; look++) {
                bool wakes = found[look] >> length & 1;
                int place = popcount(vote(wakes) & ((1u << LANE) - 1));
                UNROLL for (int l = 0; l < LENGTHS; l++) place += l == length ? before[look][l] : 0;
                if (wakes) res.woken[place] = look * THREADS + THREAD;
            }
            copy_to_tile(res, own, slots);
            sync();
            wake(net, res, own, slots, woken, near, start, k);
            slots += woken;
            copy_to_registers(res, own, slots);
        }
        SPENT(ON_WAKING)
        int left = end - k < LONGEST >> length ? end - k : LONGEST >> length, before_them = k;
        bool takes_part = slots > WARP * SLOTS_OF_WARP;
        if (takes_part) {
            if (traced)
                k = take_steps<true, GROUPS>(net, res, own, k, left, slots, pixels, hold_start);
            else if (slots <= 16 * FEWER)
                k = take_steps<false, FEWER>(net, res, own, k, left, slots, pixels, hold_start);
            else
                k = take_steps<false, GROUPS>(net, res, own, k, left, slots, pixels, hold_start);
            if (THREAD == 0) res.reached = k;
        } else if (slots == 0 && THREAD == 0)
            res.reached = k + left;
        sync();
        k = res.reached;
        if (!takes_part && (k - before_them) % 2) turn_to_next(own);
        SPENT(ON_STEPS)
    }
    if (own.growing) sweep<true, GROUPS>(res, own, slots, unused);
    copy_to_tile(res, own, slots);
    if (q < slots && FIRST) {
        i = res.id[q];
        ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(B)[i] = own.b, ROW(S)[i] = own.s, COUNT(C)[i] = own.c;
        ROW(A)[i] = res.a[q], ROW(SCALE)[i] = res.scale[q], ROW(SHIFT)[i] = res.shift[q];
    }
    for (int row = slots + (int)THREAD; row < near; row += THREADS) {
        int j = res.id[row];
        ROW(U)[j] = res.u[row];
        close_silent(net, j, start, k, end, odd, hold_start + k - 1);
    }
    sync();
    store(net, res, slots, near, start, k, end, odd, hold_start + k - 1);
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        refresh_all(net, res.shared);
        int active = list_active(net, res.shared);
        update(net, x, pixels, active, hold_start + k - 1);
    }
    SPENT(ON_FAR)
    again = !odd && k > start && k < hold - 1;
    return k;
}
