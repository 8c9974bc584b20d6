// Awake neurons apart: those that are active or may soon be, each with a row and a column of M̂ close by.
//
// Each has a slot and a thread. Four threads, a team, share their four rows: each keeps a quarter of the columns of all
// four, the first COLUMNS / 4 of these in registers and the others in shared memory. So a rate that is read serves four
// rows, and a step is a sweep over the columns, three shuffles, one barrier, and little else.
//
// The other neurons are silent. Far ones stay so up to the end of a spell, even if nothing inhibits them, and take one
// step with the summed drive then. The sleepers in between are looked after block by block: from a floor under each rate
// follows a bound on their drives, and those that it does not keep silent for the length of the block are woken
// beforehand. A block ends early when a rate falls below its floor. So what is computed is exact, and never undone.
//
// The weights from slots to sleepers are copied to a tile, of which the first TILED columns are in shared memory.
#define SLOTS THREADS
#define TEAM ((int)THREAD / 4)        // of this thread
#define MINE ((int)THREAD % 4)        // its number in the team
#define REST (SLOTS - COLUMNS)        // columns in shared memory
#define LOOKING (SLEEPERS / 4)        // threads that look after all sleepers, four each: whole warps
#define PARTS (THREADS / LOOKING)     // such teams, which share the slots
#define SPELL 250                     // steps after which slots are given anew, to those who need one; at most
#define LENGTHS 4                     // of a block: 32, 16, 8 or 4 steps
#define LONGEST 32
#define FEW_WAKE 4                    // a block is so long that no more than these have to be woken, if that helps
#define TOGETHER 4                    // neurons that are woken at a time
#define GROUPS (COLUMNS / 16)         // of columns, four for each of four threads, in registers
#define NOWHERE LARGE                 // the place of a far neuron

struct Awake {  // in shared memory
    Shared shared;
    int id[SLOTS];                              // which neuron is in a slot
    alignas(16) real y[2][SLOTS + 16];          // rates in the slots, before and after a step; and whether the block ends
    Four both[SLOTS / 2];                       // of two slots: rates added up since the block began, floors under them
    real total[SLOTS];                          // rates added up since the spell began
    real a[SLOTS], scale[SLOTS], shift[SLOTS];
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    FourIds sleeper[LOOKING];                   // which neurons they are, or −1
    Four u[LOOKING], b[LOOKING], s[LOOKING];
    Four inhibition[PARTS][LOOKING], least[PARTS][LOOKING];
    int unsafe[WARPS][LENGTHS];                 // sleepers that might become active in a block of that length
    alignas(16) real row[TOGETHER][SLOTS], column[TOGETHER][SLOTS];  // of those who wake
    short place[LARGE];                         // of a neuron: its slot; −1 and less if it is the first sleeper, and so on
    int odd;                                    // has a row to be rectified?
    Four rest[REST / 4 * SLOTS];                // see `rest_of`
    Four tile[TILED * LOOKING];
};
typedef Awake Memory;

// Columns 16 g + 4 t to 16 g + 4 t + 3 of the r-th of the rows that this thread shares, of which it is the t-th.
DEVICE Four& rest_of(Awake& res, int g, int r) { return res.rest[((g - GROUPS) * 4 + r) * SLOTS + THREAD]; }

// The weights from slot q to those at these places, if they sleep.
DEVICE void put_into_tile(Net& net, Awake& res, int q, const Places& places, const Four& weights) {
    if (q < TILED) {
        UNROLL for (int e = 0; e < 4; e++)
            if (places.of[e] < 0) ((real*)res.tile)[q * SLEEPERS - 1 - places.of[e]] = weights.of[e];
    } else {
        UNROLL for (int e = 0; e < 4; e++)
            if (places.of[e] < 0) global(net.tile)[q * SLEEPERS - 1 - places.of[e]] = weights.of[e];
    }
}

// Which neurons are far, which sleep and which are awake, from step k on: AWAKE are those that are active or whose gates
// may open before the last step; far are those that stay silent up to the end whatever happens. Gives that end; k if
// there are too many of them. New c's of the silent ones are left in NEW_C; those whose gates open at the hold's last
// step alone, as with a discrete schedule, are OPENED.
enum { FAR, SLEEPS, AWAKE };

DEVICE int choose(Net& net, Awake& res, int k, int& awake, int& sleepers) {
    real *u = ROW(U), *y = ROW(Y), *a = ROW(A), *b = ROW(B);
    long long *c = COUNT(C), *new_c = COUNT(NEW_C);
    unsigned char *near = TRUTH(NEAR), *opened = TRUTH(OPENED);
    // From rest, all neurons are active at first, and then ever fewer are.
    int spell = !net.from_rest || 2 * k > SPELL ? SPELL : k > WORTHWHILE ? 2 * k : 2 * WORTHWHILE;
    ROLLED for (int end = k + spell < net.hold ? k + spell : (int)net.hold; end - k >= WORTHWHILE; end = k + (end - k) / 2) {
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
            near[i] = kind, opened[i] = opens;
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

struct Own {  // of a thread: of the neuron in its slot, but for m
    real m[4][GROUPS][4];      // see `rest_of`
    real u, y, before, b, s;   // `before`: y before the last step
    real sum, lowest;          // as in `Awake`
    real gain;                 // by how much it is still to grow, per rate
    long long c;
    real *now, *next;          // where rates are read and written: from its first column on, and its own
    int apart;                 // how far the next step's are from these
    bool growing;              // is a row of this warp still to grow?
};

// M̂ @ y for this thread's row; where the team's rows GROW, M̂ += gains yᵀ before that.
template <bool GROW> DEVICE real sweep(Awake& res, Own& own, int slots, real& ends) {
    Four rates[GROUPS];
    real part[4] = {0, 0, 0, 0}, gains[4], *y = own.now;
    UNROLL for (int g = 0; g < GROUPS; g++) rates[g] = at_once((const Four*)y + 4 * g);
    ends = one_at_once(y + SLOTS);
    if (GROW) {
        UNROLL for (int r = 0; r < 4; r++) gains[r] = shuffle(own.gain, LANE / 4 * 4 + r);
        own.gain = 0;
    }
    sync_warp();  // or each rate would be asked for when it is needed
    UNROLL for (int g = 0; g < GROUPS; g++)
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int r = 0; r < 4; r++) {
                real& weight = own.m[r][g][e];
                if (GROW) weight = plus(gains[r], rates[g].of[e], weight);
                part[r] = plus(weight, rates[g].of[e], part[r]);
            }
    ROLLED for (int g = GROUPS; 16 * g < slots; g++) {
        Four some = at_once((const Four*)y + 4 * g), weights[4];
        UNROLL for (int r = 0; r < 4; r++) weights[r] = at_once(&rest_of(res, g, r));
        UNROLL for (int r = 0; r < 4; r++) {
            UNROLL for (int e = 0; e < 4; e++) {
                if (GROW) weights[r].of[e] = plus(gains[r], some.of[e], weights[r].of[e]);
                part[r] = plus(weights[r].of[e], some.of[e], part[r]);
            }
            if (GROW) rest_of(res, g, r) = weights[r];
        }
    }
    // Each gives away what belongs to the others' rows: two of four sums, then one of two.
    bool odd = THREAD & 1, high = THREAD & 2;
    real first = (odd ? part[1] : part[0]) + shuffle_xor(odd ? part[0] : part[1], 1);
    real second = (odd ? part[3] : part[2]) + shuffle_xor(odd ? part[2] : part[3], 1);
    return (high ? second : first) + shuffle_xor(high ? first : second, 2);
}

// What four slots add to the inhibition of four sleepers: to that of the last block, and to the least of the next.
DEVICE void add_four(const Four* weights, const Four* both, Four& inhibition, Four& least) {
    UNROLL for (int j = 0; j < 4; j++)
        UNROLL for (int e = 0; e < 4; e++) {
            inhibition.of[e] = plus(weights[j].of[e], both[j / 2].of[j % 2 * 2], inhibition.of[e]);
            least.of[e] = plus(weights[j].of[e], both[j / 2].of[j % 2 * 2 + 1], least.of[e]);
        }
}

// The inhibition of the sleepers, by parts: each part of the threads adds up some of the slots, four at a time; past the
// last one stands another, whose rates in `both` are 0.
DEVICE void inhibit_sleepers(Net& net, Awake& res, int slots, int sleepers) {
    int part = THREAD / LOOKING, z = THREAD % LOOKING;
    if (part >= PARTS || 4 * (z - LANE) >= sleepers) return;
    int share = (slots + 4 * PARTS - 1) / (4 * PARTS) * 4, end = (part + 1) * share < slots ? (part + 1) * share : slots;
    Four inhibition = {0, 0, 0, 0}, least = {0, 0, 0, 0}, weights[4], both[2];
    int q = part * share, near = end < TILED ? end : TILED;
    ROLLED for (; q < near; q += 4) {
        UNROLL for (int j = 0; j < 4; j++) weights[j] = at_once(&res.tile[(q + j < end ? q + j : q) * LOOKING + z]);
        UNROLL for (int j = 0; j < 2; j++) both[j] = at_once(&res.both[q / 2 + j]);
        sync_warp();  // or each would be asked for when it is needed
        add_four(weights, both, inhibition, least);
    }
    ROLLED for (; q < end; q += 4) {
        UNROLL for (int j = 0; j < 4; j++)
            weights[j] = ((const Four*)global(net.tile))[(q + j < end ? q + j : q) * LOOKING + z];
        UNROLL for (int j = 0; j < 2; j++) both[j] = at_once(&res.both[q / 2 + j]);
        sync_warp();
        add_four(weights, both, inhibition, least);
    }
    res.inhibition[part][z] = inhibition, res.least[part][z] = least;
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`res.unsafe`, by warps); the bits of `found[e]` say for which lengths this thread's are among them.
DEVICE void look_after(Awake& res, const real* dynamics, int sleepers, int steps, unsigned* found) {
    UNROLL for (int e = 0; e < 4; e++) found[e] = 0;
    if (THREAD < LOOKING && 4 * THREAD < sleepers) {
        Four inhibition = res.inhibition[0][THREAD], least = res.least[0][THREAD], u = res.u[THREAD];
        ROLLED for (int part = 1; part < PARTS; part++)
            UNROLL for (int e = 0; e < 4; e++)
                inhibition.of[e] += res.inhibition[part][THREAD].of[e], least.of[e] += res.least[part][THREAD].of[e];
        UNROLL for (int e = 0; e < 4; e++) {
            real b = res.b[THREAD].of[e], s = res.s[THREAD].of[e], drive = b - s * least.of[e], new_u, new_y, unused;
            step(dynamics, u.of[e], 0, 0, (real)steps * b - s * inhibition.of[e], 0, new_u, new_y, unused, unused);
            if (steps) u.of[e] = new_u;
            drive = drive <= 0 ? (real)0 : drive;
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                step(dynamics, u.of[e], 0, 0, (real)(LONGEST >> l) * drive, 0, new_u, new_y, unused, unused);
                found[e] |= (unsigned)(res.sleeper[THREAD].of[e] >= 0 && !(new_y <= 0)) << l;
            }
        }
        res.u[THREAD] = u;
    }
    if (WARP * 32 < LOOKING)
        UNROLL for (int l = 0; l < LENGTHS; l++) {
            int count = 0;
            UNROLL for (int e = 0; e < 4; e++) count += popcount(vote(found[e] >> l & 1));
            if (LANE == 0) res.unsafe[WARP][l] = count;
        }
}

// Wake those that were found for this length of a block: give them the next slots.
DEVICE void wake(
    Net& net, Awake& res, Own& own, const unsigned* found, int length, int earlier, int slots, int waking, int start, int k) {
    real* P = global(net.P);
    int stride = net.stride, q = THREAD;
    UNROLL for (int e = 0; e < 4; e++) {
        unsigned lanes = vote(found[e] >> length & 1);
        if (found[e] >> length & 1) {
            int i = res.sleeper[THREAD].of[e], slot = slots + earlier + popcount(lanes & ((1u << LANE) - 1));
            ROW(U)[i] = res.u[THREAD].of[e], TRUTH(OPENED)[i] = 0;
            res.id[slot] = i, res.place[i] = slot, res.sleeper[THREAD].of[e] = -1;
        }
        earlier += popcount(lanes);
    }
    sync();
    bool wakes = q >= slots && q < slots + waking;
    long long c = 0;
    if (wakes) {
        int i = res.id[q];
        own.u = ROW(U)[i], own.y = own.before = 0, own.b = ROW(B)[i], own.s = ROW(S)[i], c = COUNT(C)[i];
        res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    }
    ROLLED for (int first = slots; first < slots + waking; first += TOGETHER) {
        int last = first + TOGETHER < slots + waking ? first + TOGETHER : slots + waking;
        if (first > slots) sync();  // all have what came before
        real row[TOGETHER];
        const real* others = P + (size_t)res.id[q < first ? q : first] * stride;
        UNROLL for (int w = 0; w < TOGETHER; w++)
            row[w] = q < first ? others[res.id[first + w < last ? first + w : first]] : (real)0;
        refresh<TOGETHER>(
            net, res.id + first, last - first, [&](int i) { return res.place[i]; },
            [&](int w, const Places& places, const Four& weights) {
                put_into_tile(net, res, first + w, places, weights);
                UNROLL for (int e = 0; e < 4; e++)
                    if (places.of[e] >= 0 && places.of[e] < last) res.column[w][places.of[e]] = weights.of[e];
            });
        UNROLL for (int w = 0; w < TOGETHER; w++) res.row[w][q] = row[w];
        sync();
        mark_fresh(net, res.id + first, last - first);
        // Rows, of which columns up to the first are known here; then columns, of all rows.
        UNROLL for (int r = 0; r < 4; r++) {
            int w = 4 * TEAM + r - first;
            if (w >= 0 && w < last - first) {
                UNROLL for (int g = 0; g < GROUPS; g++) {
                    Four some = at_once((const Four*)res.row[w] + 4 * g + MINE);
                    UNROLL for (int e = 0; e < 4; e++) own.m[r][g][e] = some.of[e];
                }
                ROLLED for (int g = GROUPS; 16 * g < SLOTS; g++) rest_of(res, g, r) = ((const Four*)res.row[w])[4 * g + MINE];
            }
        }
        ROLLED for (int place = first; place < last; place++) {
            if (place / 4 % 4 != MINE) continue;
            real some[4];
            UNROLL for (int r = 0; r < 4; r++) some[r] = res.column[place - first][4 * TEAM + r];
            UNROLL for (int g = 0; g < GROUPS; g++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (16 * g + e == place - MINE * 4)
                        UNROLL for (int r = 0; r < 4; r++) own.m[r][g][e] = some[r];
            if (place >= COLUMNS)
                UNROLL for (int r = 0; r < 4; r++) rest_of(res, place / 16, r).of[place % 4] = some[r];
        }
    }
    if (wakes) own.c = silent_gates(net, c, start, k).c;
}

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Awake& res, const Own& own, bool opened, int k, long long t, int slots) {
    if (net.trace_y && THREAD < slots) global(net.trace_y)[t * net.n + res.id[THREAD]] = own.y;
    if (net.trace_burst && THREAD < slots) global(net.trace_burst)[t * net.n + res.id[THREAD]] = opened;
    int more_than_0 = popcount(vote(own.y > 0)), not_0 = popcount(vote(own.y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// Take so many steps from k on, or fewer: up to the first at which a rate falls below its floor, or a row has to be
// rectified. Gives the step that was reached.
template <bool TRACED>
DEVICE int take_steps(
    Net& net, Awake& res, Own& own, int k, int left, int slots, int pixels, long long hold_start) {
    if (slots <= WARP * 32) {  // this warp has no slots
        do {
            sync();
            own.now += own.apart, own.next -= own.apart, own.apart = -own.apart;
            k++;
        } while (--left && one_at_once(own.now + SLOTS) == 0);
        return k;
    }
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], unused;
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = res.schedule[j];
    int q = THREAD, hold = net.hold;
    bool is_one = q < slots;
    do {
        // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        real ends, beta, new_u, new_y;
        long long new_c;
        real felt = own.growing ? sweep<true>(res, own, slots, ends) : sweep<false>(res, own, slots, ends);
        own.growing = false;
        if (ends != 0) break;
        step(dynamics, own.u, 0, 0, own.b - own.s * felt, 0, new_u, new_y, unused, unused);
        new_y = is_one ? new_y : (real)0;
        *own.next = new_y;
        gate(schedule, new_y, 0, own.c, k, hold, beta, new_c);
        own.sum += own.y, own.before = own.y, own.u = new_u, own.y = new_y, own.c = new_c;
        bool opened = is_one && beta != 0, attention = is_one && !(new_y >= own.lowest), changed = false;
        Terms terms;
        own.growing = vote_any(opened);
        if (own.growing && opened) {
            // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself when it is read again
            terms = terms_of_update(res.rule, new_y, res.a[q]);
            changed = !(odd_W(terms, res.scale[q]) || odd_M(net.floor, terms, own.s));
            if (changed) {
                res.a[q] = terms.a;
                res.scale[q] *= terms.keep_w;
                res.shift[q] = terms.keep_w * res.shift[q] + terms.gain;
                own.b = terms.keep_w * own.b + terms.gain * net.x_x;
                own.s *= terms.keep_m;
                own.gain = terms.gain * reciprocal(own.s);
                if (own.gain != 0) TRUTH(GROWN)[res.id[q]] = 1;
            } else
                TRUTH(OPENED)[res.id[q]] = 1, res.odd = 1, attention = true;  // left to `update`
        }
        if (attention)
            UNROLL for (int j = 0; j < 4; j++) own.next[SLOTS - q + 4 * j] = 1;
        if (TRACED) trace(net, res, own, opened, k, hold_start + k, slots);
        sync();
        if (TRACED && changed && net.trace_updates)
            add_to(&global(net.trace_updates)[hold_start + k],
                   synapses_changed(net, terms, own.y, pixels, (int)res.shared.active[k % 3]));
        own.now += own.apart, own.next -= own.apart, own.apart = -own.apart;
        k++;
    } while (--left);
    return k;
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if it does not
// pay. `again` says that it may do so from there on; else all neurons take some steps.
DEVICE int run_few(Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    int slots, sleepers, start = k, hold = net.hold, stride = net.stride, end = choose(net, res, k, slots, sleepers);
    SPENT(ON_CHOOSING)
    again = false;
    if (end == k) return k;
    real unused, *P = global(net.P);
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;
    // If inhibition moves silent neurons away from the threshold, they have some time to come back. Else a drive above 0
    // wakes them at once, so that floors must be close to the rates, and nothing is gained by the shortest blocks.
    real drifted;
    step(net.dynamics, 0, 0, 0, -1, 0, drifted, unused, unused, unused);
    bool drifts = drifted < 0;

    // What the slots and the sleepers begin with.
    int q = THREAD, i = q < slots ? LIST(LISTED)[q] : -1, of[4];
    res.id[q] = i;
    if (i < 0) i = 0;
    Own own;
    own.u = ROW(U)[i], own.y = own.before = q < slots ? ROW(Y)[i] : (real)0, own.b = ROW(B)[i], own.s = ROW(S)[i];
    own.c = COUNT(C)[i], own.sum = own.gain = res.total[q] = 0, own.growing = false;
    own.now = res.y[0] + MINE * 4, own.next = res.y[1] + q, own.apart = SLOTS + 16;
    res.y[0][q] = own.y, res.y[1][q] = 0;
    for EACH(j, DYNAMICS_CONSTANTS) res.dynamics[j] = net.dynamics[j];
    for EACH(j, SCHEDULE_CONSTANTS) res.schedule[j] = net.schedule[j];
    for EACH(j, RULE_CONSTANTS) res.rule[j] = net.rule[j];
    res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    for EACH(j, LARGE) res.place[j] = NOWHERE;
    if (q == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
    sync();
    if (q < slots) res.place[i] = q;
    if (q < LOOKING)
        UNROLL for (int e = 0; e < 4; e++) {
            int j = 4 * q + e < sleepers ? LIST(ACTIVE)[4 * q + e] : -1;
            res.sleeper[q].of[e] = j;
            if (j >= 0) res.place[j] = -1 - (4 * q + e);
            if (j < 0) j = 0;
            res.u[q].of[e] = ROW(U)[j], res.b[q].of[e] = ROW(B)[j], res.s[q].of[e] = ROW(S)[j];
        }
    sync();
    refresh<8>(
        net, res.id, slots, [&](int i) { return res.place[i]; },
        [&](int slot, const Places& places, const Four& weights) { put_into_tile(net, res, slot, places, weights); });
    sync();
    mark_fresh(net, res.id, slots);
    UNROLL for (int r = 0; r < 4; r++) of[r] = 4 * TEAM + r < slots ? res.id[4 * TEAM + r] : -1;
    UNROLL for (int g = 0; g < GROUPS; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = 16 * g + MINE * 4 + e;
            const real* column = P + (size_t)res.id[slot < slots ? slot : 0] * stride;
            UNROLL for (int r = 0; r < 4; r++) own.m[r][g][e] = of[r] >= 0 && slot < slots ? column[of[r]] : (real)0;
        }
    ROLLED for (int g = GROUPS; 16 * g < SLOTS; g++)
        UNROLL for (int r = 0; r < 4; r++) {
            Four weights;
            UNROLL for (int e = 0; e < 4; e++) {
                int slot = 16 * g + MINE * 4 + e;
                weights.of[e] = of[r] >= 0 && slot < slots ? P[(size_t)res.id[slot] * stride + of[r]] : (real)0;
            }
            rest_of(res, g, r) = weights;
        }

    SPENT(ON_LOADING)
    bool odd = false;  // has a row to be rectified?
    int moved = k;
    while (true) {
        int longest = drifts ? 0 : 1;
        real fall = own.y < own.before ? (LONGEST >> longest) * (own.y - own.before) : (real)0;
        own.lowest = drifts ? (real)0.95 * own.y + (real)1.5 * fall : (real)0.995 * own.y + (real)1.2 * fall;
        own.lowest = own.lowest > 0 ? own.lowest : (real)0;
        ((real*)res.both)[2 * q] = own.sum, ((real*)res.both)[2 * q + 1] = own.lowest;
        res.total[q] += own.sum, own.sum = 0;
        sync();
        odd = res.odd;
        if (q < 32) res.y[q / 16][SLOTS + q % 16] = 0;
        inhibit_sleepers(net, res, slots, sleepers);
        sync();
        unsigned found[4];
        look_after(res, res.dynamics, sleepers, k - moved, found);
        moved = k;
        sync();
        SPENT(ON_SLEEPERS)
        if (k == end || odd) break;
        int length = longest, earlier = 0, waking = 0, in_any_case = 0;
        ROLLED for (int warp = 0; warp * 32 < LOOKING; warp++) in_any_case += res.unsafe[warp][LENGTHS - 1];
        ROLLED for (;; length++) {
            earlier = waking = 0;
            ROLLED for (int warp = 0; warp * 32 < LOOKING; warp++) {
                if (warp == WARP) earlier = waking;
                waking += res.unsafe[warp][length];
            }
            if (waking <= FEW_WAKE || waking == in_any_case) break;
        }
        if (slots + waking > SLOTS) break;
        if (waking) wake(net, res, own, found, length, earlier, slots, waking, start, k), slots += waking;
        SPENT(ON_WAKING)
        int left = end - k < LONGEST >> length ? end - k : LONGEST >> length;
        k = traced ? take_steps<true>(net, res, own, k, left, slots, pixels, hold_start)
                   : take_steps<false>(net, res, own, k, left, slots, pixels, hold_start);
        SPENT(ON_STEPS)
    }
    if (own.growing) sweep<true>(res, own, slots, unused);
    UNROLL for (int r = 0; r < 4; r++) {
        of[r] = 4 * TEAM + r < slots ? res.id[4 * TEAM + r] : -1;
        if (of[r] >= 0 && !TRUTH(GROWN)[of[r]]) of[r] = -1;
    }
    UNROLL for (int g = 0; g < GROUPS; g++)
        UNROLL for (int e = 0; e < 4; e++) {
            int slot = 16 * g + MINE * 4 + e;
            real* column = P + (size_t)res.id[slot < slots ? slot : 0] * stride;
            UNROLL for (int r = 0; r < 4; r++)
                if (of[r] >= 0 && slot < slots) column[of[r]] = own.m[r][g][e];
        }
    ROLLED for (int g = GROUPS; 16 * g < slots; g++)
        UNROLL for (int r = 0; r < 4; r++)
            UNROLL for (int e = 0; e < 4; e++) {
                int slot = 16 * g + MINE * 4 + e;
                if (of[r] >= 0 && slot < slots) P[(size_t)res.id[slot] * stride + of[r]] = rest_of(res, g, r).of[e];
            }
    if (q < slots) {
        i = res.id[q];
        ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(B)[i] = own.b, ROW(S)[i] = own.s, COUNT(C)[i] = own.c;
        ROW(A)[i] = res.a[q], ROW(SCALE)[i] = res.scale[q], ROW(SHIFT)[i] = res.shift[q];
    }
    if (q < LOOKING)
        ROLLED for (int e = 0; e < 4; e++) {
            int j = res.sleeper[q].of[e];
            if (j >= 0) ROW(U)[j] = res.u[q].of[e], close_silent(net, j, start, k, end, odd, hold_start + k - 1);
        }
    sync();
    SPENT(ON_STORING)
    unsigned char* near = TRUTH(NEAR);
    sum_columns(
        net, res.id, slots, [&](int j) { return res.total[j]; }, [=](int j) { return near[j] == FAR; },
        [&](int j, real sum) {
            move_silent(net, j, k - start, sum);
            close_silent(net, j, start, k, end, odd, hold_start + k - 1);
        });
    sync();
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        refresh_all(net, res.shared);
        int active = list_active(net, res.shared);
        update(net, x, pixels, active, hold_start + k - 1);
    }
    SPENT(ON_FAR)
    again = !odd && k > start && k < hold - 1;
    return k;
}
