// Few neurons apart, with their weights close by: the rows of M that matter in this hold, the columns that are active.
//
// Of all neurons the near ones are those that could become active in the next steps; with additive dynamics the others,
// the far ones, take one step with the summed drive at the end. Each active neuron has a slot, in which the near part
// of its column of M̂ lies: the first slots are registers, the others shared memory, and what does not fit is read from
// global memory at each step. A thread keeps ROWS rows of a quarter of all slots: four lanes have the same rows, add up
// what they have, and then each moves a quarter of these rows, its own ones.
//
//     lane = 8 quarter + group       slot 16 j + 4 quarter + i  is register 4 j + i of that quarter
//
// Two blocks share a multiprocessor, so there are few warps, and they wait for whatever takes long. So all that a step
// needs is asked for before the first of it is used, and what is seldom needed is compiled apart.
#define OWN (ROWS / 4)
#define NEAR_ROWS (ROWS * THREADS / 4)
#define REGISTER_SLOTS (4 * COLUMNS)
#define SLOTS (REGISTER_SLOTS + SHARED_SLOTS)
#define NOWHERE SLOTS     // the slot of those who have none
#define OVER_AT_ONCE 8    // columns that a lane reads from global memory at the same time
#define AHEAD ((real)48)  // steps: who would be active by then may get a slot when others do
#define SPARE 8           // slots for them
#define KEPT (-2)         // instead of a WANTED column: the slot of one of them

struct alignas(OWN * sizeof(real)) Own { real of[OWN]; };

struct Resident {  // in shared memory
    Shared shared;
    FourIds near[NEAR_ROWS / 4];           // which neuron a near row is
    FourIds column[SLOTS / 4];             // which neuron a slot's column belongs to, or −1
    FourIds wanted[SLOTS / 4];             // the column to be put into it, or −1, or KEPT
    Four y[2][SLOTS / 4 + 1];              // rates of the neurons in the slots, before and after a step; one is NOWHERE
    real a[NEAR_ROWS];
    Four part[4][NEAR_ROWS / 4];           // what each quarter adds to M̂ y
    Four gain[NEAR_ROWS / 4];              // how much a near row's weights grow per rate
    int row[SLOTS];                        // which near row the neuron in a slot is
    int free[SLOTS], frees, active_slots;  // slots that may be taken; slots of active neurons
    int used;                              // where slots in use end
    int slot[NEAR_ROWS];                   // the slot of a near row, or NOWHERE
    int active[WARPS], soon[WARPS];        // near rows without a slot that are active, or may soon be
    int over, over_id[NEAR_ROWS];          // active neurons without a slot
    real over_y[NEAR_ROWS], rate[NEAR_ROWS];  // their rates; those of near rows, or the sums of them
    Four weights[SHARED_SLOTS * NEAR_ROWS / 4];
};
typedef Resident Memory;

struct Place {      // of a thread among the others
    int quarter;    // its quarter of the slots
    int four;       // where its first four near rows are, counted in fours
    int own;        // the first of its own rows
    bool all_near;  // are near rows all neurons, or listed ones?
};

DEVICE int four_of(const Place& at, int r) { return at.four + r / 4 * 8; }  // the four with the r-th of its near rows

DEVICE Place place_of_thread(bool all_near) {
    int quarter = LANE / 8, first = WARP * 8 * ROWS + LANE % 8 * 4;
    return {kept(quarter), kept(first / 4), kept(first + quarter * OWN / 4 * 32 + quarter * OWN % 4), all_near};
}

// The weights from a neuron to four of this thread's rows.
DEVICE Four weights_of(Net& net, Resident& res, const Place& at, int column, int r) {
    const real* P = global(net.P) + (size_t)column * net.stride;
    if (at.all_near) return ((const Four*)P)[four_of(at, r)];
    FourIds id = res.near[four_of(at, r)];
    Four found;
    UNROLL for (int e = 0; e < 4; e++) found.of[e] = P[id.of[e]];
    return found;
}

// Put them back, where rows have grown.
DEVICE void put_back(Net& net, Resident& res, const Place& at, unsigned grown, int column, int r, const Four& weights) {
    if ((grown >> r & 15) == 0) return;
    real* P = global(net.P) + (size_t)column * net.stride;
    FourIds id = res.near[four_of(at, r)];
    UNROLL for (int e = 0; e < 4; e++)
        if (grown >> (r + e) & 1) P[id.of[e]] = weights.of[e];
}

// The weights in shared memory of this quarter's slot i of a group, and four of this thread's rows.
DEVICE Four& shared_weights(Resident& res, const Place& at, int group, int i, int r) {
    return res.weights[(16 * group + 4 * at.quarter + i) * (NEAR_ROWS / 4) + four_of(at, r)];
}

// Two columns in shared memory of this quarter, and what they add to the sums.
DEVICE void read_two(Resident& res, const Place& at, int group, int i, Four two[2][ROWS / 4]) {
    UNROLL for (int e = 0; e < 2; e++)
        UNROLL for (int r = 0; r < ROWS; r += 4) two[e][r / 4] = at_once(&shared_weights(res, at, group, i + e, r));
}

DEVICE void add_two(const Four two[2][ROWS / 4], real y_0, real y_1, real* sums) {
    UNROLL for (int r = 0; r < ROWS; r++) sums[r] = plus(two[0][r / 4].of[r % 4], y_0, sums[r]);
    UNROLL for (int r = 0; r < ROWS; r++) sums[r] = plus(two[1][r / 4].of[r % 4], y_1, sums[r]);
}

// The two grow by gains yᵀ.
DEVICE void grow_two(
    Resident& res, const Place& at, int group, int i, const real* gains, real y_0, real y_1, Four two[2][ROWS / 4]) {
    UNROLL for (int e = 0; e < 2; e++)
        UNROLL for (int r = 0; r < ROWS; r += 4) {
            UNROLL for (int q = 0; q < 4; q++)
                two[e][r / 4].of[q] = plus(gains[r + q], e ? y_1 : y_0, two[e][r / 4].of[q]);
            shared_weights(res, at, group, i + e, r) = two[e][r / 4];
        }
}

// Put the wanted columns into their slots in shared memory, and the ones that were there back.
DEVICE void fetch_shared(Net& net, Resident& res, Place at, unsigned grown) {
    for (int group = 0; group < SHARED_SLOTS / 16; group++) {
        int place = COLUMNS + 4 * group + at.quarter;
        FourIds wanted = res.wanted[place], old = res.column[place];
        Four fetched[4][ROWS / 4];
        UNROLL for (int i = 0; i < 4; i++)
            if (wanted.of[i] >= 0)
                UNROLL for (int r = 0; r < ROWS; r += 4) {
                    Four& weights = shared_weights(res, at, group, i, r);
                    if (old.of[i] >= 0) put_back(net, res, at, grown, old.of[i], r, weights);
                    fetched[i][r / 4] = weights_of(net, res, at, wanted.of[i], r);
                }
        UNROLL for (int i = 0; i < 4; i++)
            if (wanted.of[i] >= 0)
                UNROLL for (int r = 0; r < ROWS; r += 4) shared_weights(res, at, group, i, r) = fetched[i][r / 4];
    }
}

// Put all columns in shared memory back.
DEVICE void put_back_shared(Net& net, Resident& res, Place at, unsigned grown) {
    for (int group = 0; group < SHARED_SLOTS / 16; group++) {
        FourIds column = res.column[COLUMNS + 4 * group + at.quarter];
        UNROLL for (int i = 0; i < 4; i++)
            if (column.of[i] >= 0)
                UNROLL for (int r = 0; r < ROWS; r += 4)
                    put_back(net, res, at, grown, column.of[i], r, shared_weights(res, at, group, i, r));
    }
}

// Of those without a slot: M̂ += gains yᵀ, and M̂ @ y, which is left in `part`.
DEVICE void grow_over(Net& net, Resident& res, Place at, unsigned grown) {
    for (int q = at.quarter; q < res.over; q += 4)
        UNROLL for (int r = 0; r < ROWS; r += 4) {
            Four m = weights_of(net, res, at, res.over_id[q], r), gains = res.gain[four_of(at, r)];
            UNROLL for (int e = 0; e < 4; e++) m.of[e] = plus(gains.of[e], res.over_y[q], m.of[e]);
            put_back(net, res, at, grown, res.over_id[q], r, m);
        }
}

DEVICE void sweep_over(Net& net, Resident& res, Place at) {
    int over = res.over;
    real sums[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) sums[r] = 0;
    for (int first = at.quarter; first < over; first += 4 * OVER_AT_ONCE) {
        Four m[OVER_AT_ONCE][ROWS / 4];
        UNROLL for (int i = 0; i < OVER_AT_ONCE; i++)
            UNROLL for (int r = 0; r < ROWS; r += 4)
                m[i][r / 4] = weights_of(net, res, at, res.over_id[first + 4 * i < over ? first + 4 * i : first], r);
        UNROLL for (int i = 0; i < OVER_AT_ONCE; i++) {
            real rate = first + 4 * i < over ? res.over_y[first + 4 * i] : (real)0;
            UNROLL for (int r = 0; r < ROWS; r++) sums[r] = plus(m[i][r / 4].of[r % 4], rate, sums[r]);
        }
    }
    UNROLL for (int r = 0; r < ROWS; r++) res.part[at.quarter][four_of(at, r)].of[r % 4] = sums[r];
}

// List the near neurons from step k on: those that could become active, or whose gates could open, before the hold
// ends; or if these are too many, before an earlier step. Gives that step, or k if they are still too many. The far
// ones' new c is left in NEW_C; those whose gates open at the hold's last step alone, as with a discrete schedule, are
// OPENED.
DEVICE int choose(Net& net, Resident& res, int k, int& count) {
    real *u = ROW(U), *y = ROW(Y), *a = ROW(A), *b = ROW(B);
    long long *c = COUNT(C), *new_c = COUNT(NEW_C);
    unsigned char *near = TRUTH(NEAR), *opened = TRUTH(OPENED);
    for (int end = net.hold; end - k >= WORTHWHILE; end = k + (end - k) / 2) {
        real steps = end - k;
        for EACH(i, net.n) {
            real still, new_u, new_y, unused;
            step(net.dynamics, u[i], 0, 0, 0, 0, still, unused, unused, unused);
            step(net.dynamics, u[i], 0, 0, steps * (b[i] > 0 ? b[i] : (real)0), 0, new_u, new_y, unused, unused);
            near[i] = net.all_near || !(y[i] == 0 && still == u[i] && new_y <= 0);
            opened[i] = 0;
        }
        count = list_where(res.shared, net.n, LIST(LISTED), [=](int i) { return near[i] != 0; });
        if (count > NEAR_ROWS) continue;
        bool ends_early = false, more = false;
        for EACH(i, net.n) {
            if (near[i]) continue;
            Silent silent = silent_gates(net, c[i], k, end);
            bool opens = silent.opens < end && !stays(net, a[i]), last = silent.opens == net.hold - 1;
            near[i] = opens && !last;
            opened[i] = opens && last;
            Terms terms = terms_of_update(net.rule, 0, a[i]);
            more |= opens && !last;
            ends_early |= opens && last && (odd_W(terms, ROW(SCALE)[i]) || odd_M(net.floor, terms, ROW(S)[i]));
            new_c[i] = silent.c;
        }
        more = sync_or(more);
        if (sync_or(ends_early)) {  // a row has to be rectified: all neurons take the last step
            end -= 1;
            for EACH(i, net.n) if (!near[i]) new_c[i] = silent_gates(net, c[i], k, end).c, opened[i] = 0;
        }
        if (more) count = list_where(res.shared, net.n, LIST(LISTED), [=](int i) { return near[i] != 0; });
        if (count <= NEAR_ROWS) return end;
    }
    return k;
}

// Give slots to the active neurons that have none, and to those that may soon be active, as long as no more slots have
// to be swept for these; the columns for them are then WANTED. A silent neuron may lose its slot, unless it is KEPT.
// `y` are the rates in the slots, `active` and `soon` the lanes of this warp that wait, for each own row.
DEVICE void assign(Resident& res, const Place& at, real* y, const unsigned* active, const unsigned* soon) {
    unsigned below = (1u << LANE) - 1;
    int actives = 0, soons = 0, *wanted = res.wanted[0].of;
    UNROLL for (int o = 0; o < OWN; o++) actives += popcount(active[o]), soons += popcount(soon[o]);
    if (LANE == 0) res.active[WARP] = actives, res.soon[WARP] = soons;
    sync();
    if (WARP == 0) {
        int frees = 0, active_slots = 0;
        for (int first = 0; first < SLOTS; first += 32) {
            int q = first + LANE;
            bool is_active = q < SLOTS && y[q] != 0, is_free = q < SLOTS && !is_active && wanted[q] != KEPT;
            unsigned lanes = vote(is_free);
            if (is_free) res.free[frees + popcount(lanes & below)] = q;
            frees += popcount(lanes), active_slots += popcount(vote(is_active));
        }
        if (LANE == 0) res.frees = frees, res.active_slots = active_slots;
    }
    sync();
    int turn = 0, later = 0, all = 0;
    for (int warp = 0; warp < WARPS; warp++) {
        if (warp < WARP) turn += res.active[warp], later += res.soon[warp];
        all += res.active[warp];
    }
    int most = res.active_slots + all + SPARE;  // slots that are swept in any case
    most = (most > res.used ? most : res.used) + 15 & ~15;
    later += all;
    UNROLL for (int o = 0; o < OWN; o++) {
        bool first = active[o] >> LANE & 1, second = soon[o] >> LANE & 1;
        int row = at.own + o, place = first ? turn + popcount(active[o] & below) : later + popcount(soon[o] & below);
        turn += popcount(active[o]), later += popcount(soon[o]);
        if ((first || second) && place < res.frees && (first || res.free[place] < most)) {
            int q = res.free[place];
            if (res.row[q] >= 0) res.slot[res.row[q]] = NOWHERE;
            res.row[q] = row, res.slot[row] = q, wanted[q] = res.near[0].of[row];
            y[q] = res.rate[row];
        } else if (first)
            res.over_id[place - res.frees] = res.near[0].of[row], res.over_y[place - res.frees] = res.rate[row];
    }
    if (THREAD == 0) res.over = all > res.frees ? all - res.frees : 0;
    sync();
}

// Write down what is asked for of this step.
DEVICE void trace(
    Net& net, Resident& res, int own, int k, long long t, unsigned valid, unsigned opened, real first, real last) {
    int *near = res.near[0].of, more_than_0 = 0, not_0 = 0;
    UNROLL for (int o = 0; o < OWN; o++) {
        real y = o == 0 ? first : last;
        if (net.trace_y && valid >> o & 1) global(net.trace_y)[t * net.n + near[own + o]] = y;
        if (net.trace_burst && valid >> o & 1) global(net.trace_burst)[t * net.n + near[own + o]] = opened >> o & 1;
        more_than_0 += popcount(vote(y > 0)), not_0 += popcount(vote(y != 0));
    }
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// The far neurons from step `start` up to k, at which `end` was meant to be.
DEVICE void move_far(Net& net, Resident& res, int count, int start, int k, int end, bool odd, long long t) {
    int summed = list_where(res.shared, count, res.over_id, [&](int row) { return res.rate[row] != 0; });
    for EACH(q, summed) res.over_y[q] = res.rate[res.over_id[q]], res.over_id[q] = res.near[0].of[res.over_id[q]];
    sync();
    unsigned char* is_near = TRUTH(NEAR);
    sum_columns(
        net, res.over_id, summed, [&](int q) { return res.over_y[q]; }, [=](int i) { return !is_near[i]; },
        [&](int i, real sum) {
            move_silent(net, i, k - start, sum);
            close_silent(net, i, start, k, end, odd, t);
        });
    sync();
}

// Run the near neurons from step k on, then bring the far ones up to date. Gives the step that was reached: k if it
// does not pay. `again` says that it may do so from there on; else all neurons take some steps.
DEVICE int run_few(Net& net, Resident& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    int count = 0, start = k, end = choose(net, res, k, count), hold = net.hold;
    again = false;
    if (end == k) return k;
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    real unused, x_x = net.x_x, floor = net.floor;
    UNROLL for (int q = 0; q < DYNAMICS_CONSTANTS; q++) dynamics[q] = net.dynamics[q];
    UNROLL for (int q = 0; q < SCHEDULE_CONSTANTS; q++) schedule[q] = net.schedule[q];
    UNROLL for (int q = 0; q < RULE_CONSTANTS; q++) rule[q] = net.rule[q];
    bool busy = kept(WARP * 8 * ROWS < count);  // has this warp any near rows?
    bool traced = kept(net.trace_active || net.trace_updates || net.trace_y || net.trace_burst);
    Place at = place_of_thread(count == net.n);
    real m[ROWS][COLUMNS], u[OWN], y[OWN], b[OWN], s[OWN], scale[OWN], shift[OWN], sum[OWN], drive[OWN];
    long long c[OWN];
    int slot[OWN], own = at.own, used = 0, over = 0;
    unsigned valid = 0, grown = 0;  // which of its own rows are near ones; which of its rows have grown
    UNROLL for (int o = 0; o < OWN; o++) {
        bool is_near = own + o < count;
        int i = is_near ? LIST(LISTED)[own + o] : (int)net.n - 1;
        valid |= (unsigned)is_near << o;
        u[o] = ROW(U)[i], y[o] = is_near ? ROW(Y)[i] : (real)0, b[o] = ROW(B)[i], s[o] = ROW(S)[i], c[o] = COUNT(C)[i];
        res.a[own + o] = ROW(A)[i], scale[o] = ROW(SCALE)[i], shift[o] = ROW(SHIFT)[i];
        slot[o] = NOWHERE, sum[o] = drive[o] = 0;
        res.near[0].of[own + o] = i, res.slot[own + o] = NOWHERE;
    }
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int j = 0; j < COLUMNS; j++) m[r][j] = 0;
    real *now = res.y[0][0].of, *next = res.y[1][0].of;
    for EACH(q, SHARED_SLOTS * NEAR_ROWS / 4) res.weights[q] = {0, 0, 0, 0};  // what was there need not be numbers
    for EACH(q, SLOTS) now[q] = next[q] = 0, res.column[0].of[q] = res.wanted[0].of[q] = res.row[q] = -1;
    if (THREAD == 0) res.used = res.over = 0, res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0;
    sync();
    bool attention = true, odd = false, growing = false, summed = false;
    real sums[ROWS];
    while (true) {
        if (attention) {  // an active neuron has no slot
            unsigned active[OWN], soon[OWN];
            UNROLL for (int o = 0; o < OWN; o++) {
                real new_u, new_y, most = AHEAD * (drive[o] > 0 ? drive[o] : (real)0);
                step(dynamics, u[o], 0, 0, most, 0, new_u, new_y, unused, unused);
                bool without = slot[o] == NOWHERE && valid >> o & 1, is_soon = y[o] == 0 && !(new_y <= 0);
                active[o] = vote(without && y[o] != 0), soon[o] = vote(without && is_soon);
                if (slot[o] != NOWHERE && is_soon) res.wanted[0].of[slot[o]] = KEPT;
                res.rate[own + o] = y[o];
            }
            assign(res, at, now, active, soon);
            UNROLL for (int o = 0; o < OWN; o++) slot[o] = res.slot[own + o];
            if (busy) {
                UNROLL for (int j = 0; j < COLUMNS / 4; j++)
                    UNROLL for (int i = 0; i < 4; i++) {
                        int wanted = res.wanted[4 * j + at.quarter].of[i], old = res.column[4 * j + at.quarter].of[i];
                        UNROLL for (int r = 0; r < ROWS; r += 4)
                            if (wanted >= 0) {
                                Four weights;
                                UNROLL for (int e = 0; e < 4; e++) weights.of[e] = m[r + e][4 * j + i];
                                if (old >= 0) put_back(net, res, at, grown, old, r, weights);
                                weights = weights_of(net, res, at, wanted, r);
                                UNROLL for (int e = 0; e < 4; e++) m[r + e][4 * j + i] = weights.of[e];
                            }
                        sync_warp();  // or registers would be short
                    }
                fetch_shared(net, res, at, grown);
            }
            sync();
            for EACH(q, SLOTS)
                if (res.wanted[0].of[q] >= 0)
                    res.column[0].of[q] = res.wanted[0].of[q], res.wanted[0].of[q] = -1, raise(&res.used, q + 1);
                else if (res.wanted[0].of[q] == KEPT)
                    res.wanted[0].of[q] = -1;
            sync();
            used = (res.used - REGISTER_SLOTS + 15) / 16, over = res.over;
        }
        if (growing) {  // M̂ += gains yᵀ, and M̂ @ y along with it
            real gains[ROWS];
            UNROLL for (int r = 0; r < ROWS; r++) {
                gains[r] = res.gain[four_of(at, r)].of[r % 4];
                grown |= (unsigned)(gains[r] != 0) << r;
            }
            UNROLL for (int r = 0; r < ROWS; r++) sums[r] = 0;
            UNROLL for (int j = 0; j < COLUMNS / 4; j++) {
                Four rates = at_once((Four*)now + 4 * j + at.quarter);
                UNROLL for (int i = 0; i < 4; i++)
                    UNROLL for (int r = 0; r < ROWS; r++) {
                        m[r][4 * j + i] = plus(gains[r], rates.of[i], m[r][4 * j + i]);
                        sums[r] = plus(m[r][4 * j + i], rates.of[i], sums[r]);
                    }
            }
            for (int group = 0; group < used; group++) {
                Four rates = at_once((Four*)now + COLUMNS + 4 * group + at.quarter);
                Four first[2][ROWS / 4], second[2][ROWS / 4];
                read_two(res, at, group, 0, first);
                read_two(res, at, group, 2, second);
                grow_two(res, at, group, 0, gains, rates.of[0], rates.of[1], first);
                add_two(first, rates.of[0], rates.of[1], sums);
                grow_two(res, at, group, 2, gains, rates.of[2], rates.of[3], second);
                add_two(second, rates.of[2], rates.of[3], sums);
            }
            if (over) grow_over(net, res, at, grown);
            growing = false, summed = true;
        }
        if (k == end || odd) break;
        if (over && busy) sweep_over(net, res, at);  // for the one step that is taken then
        do {  // steps, as long as only rates change
            bool needs = over > 0, strange = false;
            unsigned opened = 0;
            if (busy) {
                // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
                if (!summed) {
                    Four rates[COLUMNS / 4], more, first[2][ROWS / 4], second[2][ROWS / 4];
                    UNROLL for (int j = 0; j < COLUMNS / 4; j++) rates[j] = at_once((Four*)now + 4 * j + at.quarter);
                    if (used > 0) {
                        more = at_once((Four*)now + COLUMNS + at.quarter);
                        read_two(res, at, 0, 0, first);
                    }
                    UNROLL for (int r = 0; r < ROWS; r++) sums[r] = 0;
                    UNROLL for (int j = 0; j < COLUMNS / 4; j++)
                        UNROLL for (int i = 0; i < 4; i++)
                            UNROLL for (int r = 0; r < ROWS; r++)
                                sums[r] = plus(m[r][4 * j + i], rates[j].of[i], sums[r]);
                    for (int group = 0; group < used; group++) {  // two columns are on their way while two are added
                        read_two(res, at, group, 2, second);
                        add_two(first, more.of[0], more.of[1], sums);
                        real third = more.of[2], fourth = more.of[3];
                        if (group + 1 < used) {
                            more = at_once((Four*)now + COLUMNS + 4 * group + 4 + at.quarter);
                            read_two(res, at, group + 1, 0, first);
                        }
                        add_two(second, third, fourth, sums);
                    }
                }
                summed = false;
                if (over)
                    UNROLL for (int r = 0; r < ROWS; r++) sums[r] += res.part[at.quarter][four_of(at, r)].of[r % 4];
                // Through shared memory: around shuffles the compiler would not keep all weights in registers.
                UNROLL for (int r = 0; r < ROWS; r += 4) {
                    Four four;
                    UNROLL for (int e = 0; e < 4; e++) four.of[e] = sums[r + e];
                    res.part[at.quarter][four_of(at, r)] = four;
                }
                sync_warp();
                Own felt[4];
                UNROLL for (int q = 0; q < 4; q++) felt[q] = *(const Own*)&res.part[q][0].of[own];
                UNROLL for (int o = 0; o < OWN; o++) {
                    real beta, new_u, new_y;
                    long long new_c;
                    real all = (felt[0].of[o] + felt[1].of[o]) + (felt[2].of[o] + felt[3].of[o]);
                    drive[o] = b[o] - s[o] * all, sum[o] += y[o];
                    step(dynamics, u[o], 0, 0, drive[o], 0, new_u, new_y, unused, unused);
                    u[o] = new_u, y[o] = valid >> o & 1 ? new_y : (real)0;
                    next[slot[o]] = y[o];
                    gate(schedule, y[o], 0, c[o], k, hold, beta, new_c);
                    c[o] = new_c, opened |= (unsigned)(beta != 0 && valid >> o & 1) << o;
                    needs |= slot[o] == NOWHERE && y[o] != 0;
                }
                if (opened)
                    UNROLL for (int o = 0; o < OWN; o++)
                        if (opened >> o & 1) {
                            Terms terms = terms_of_update(rule, y[o], res.a[own + o]);
                            strange |= odd_W(terms, scale[o]) || odd_M(floor, terms, s[o]);
                        }
                if (traced) trace(net, res, own, k, hold_start + k, valid, opened, y[0], y[OWN - 1]);
            }
            attention = sync_or(needs || strange);
            if (attention) odd = sync_or(strange);
            if (vote_any(opened)) {
                // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself before it is read again
                bool grows = false;
                UNROLL for (int o = 0; o < OWN; o++) {
                    real gain = 0;
                    if (opened >> o & 1 && odd) TRUTH(OPENED)[res.near[0].of[own + o]] = 1;  // left to `update`
                    if (opened >> o & 1 && !odd) {
                        Terms terms = terms_of_update(rule, y[o], res.a[own + o]);
                        res.a[own + o] = terms.a;
                        scale[o] *= terms.keep_w;
                        shift[o] = terms.keep_w * shift[o] + terms.gain;
                        b[o] = terms.keep_w * b[o] + terms.gain * x_x;
                        s[o] *= terms.keep_m;
                        gain = terms.gain * reciprocal(s[o]);
                        if (net.trace_updates)
                            add_to(&global(net.trace_updates)[hold_start + k],
                                   synapses_changed(net, terms, y[o], pixels, (int)res.shared.active[k % 3]));
                    }
                    res.gain[0].of[own + o] = gain;
                    grows |= gain != 0;
                }
                growing = vote_any(grows);
                sync_warp();  // other lanes read the gains
            }
            real* rates = now;
            now = next, next = rates;
            k++;
        } while (!attention && !growing && k < end);
    }
    if (busy) {
        UNROLL for (int j = 0; j < COLUMNS / 4; j++) {
            FourIds column = res.column[4 * j + at.quarter];
            UNROLL for (int i = 0; i < 4; i++)
                if (column.of[i] >= 0)
                    UNROLL for (int r = 0; r < ROWS; r += 4) {
                        Four weights;
                        UNROLL for (int e = 0; e < 4; e++) weights.of[e] = m[r + e][4 * j + i];
                        put_back(net, res, at, grown, column.of[i], r, weights);
                    }
        }
        put_back_shared(net, res, at, grown);
    }
    UNROLL for (int o = 0; o < OWN; o++) {
        int row = own + o, i = res.near[0].of[row];
        if ((valid >> o & 1) == 0) continue;
        ROW(U)[i] = u[o], ROW(Y)[i] = y[o], ROW(B)[i] = b[o], ROW(S)[i] = s[o], COUNT(C)[i] = c[o];
        ROW(A)[i] = res.a[row], ROW(SCALE)[i] = scale[o], ROW(SHIFT)[i] = shift[o], res.rate[row] = sum[o];
        if (grown >> (at.quarter * OWN + o) & 1) TRUTH(GROWN)[i] = 1;
    }
    sync();
    if (count < net.n) move_far(net, res, count, start, k, end, odd, hold_start + k - 1);
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        int active = list_active(net, res.shared);
        update(net, res.shared, x, pixels, active, hold_start + k - 1);
    }
    again = !odd && end < hold - 1;
    return k;
}
