// Awake neurons apart: those that are active or may soon be, each with a row and a column of M̂ close by.
//
// Each has a slot: a thread, which keeps the first COLUMNS weights of its row in registers and the others in shared
// memory, so that a step is a sweep over that row, one barrier, and little else. The other neurons are silent. Far ones
// stay so up to the end of a spell, even if nothing inhibits them, and take one step with the summed drive then. The
// sleepers in between are looked after block by block: from a floor under each rate follows a bound on their drives, and
// those that it does not keep silent for the length of the block are woken beforehand. A block ends early when a rate
// falls below its floor. So what is computed is exact, and never undone.
//
// The weights from slots to sleepers are copied to a tile, of which the first TILED columns are in shared memory.
#define SLOTS THREADS
#define REST (SLOTS - COLUMNS)        // columns in shared memory
#define LOOKING (SLEEPERS / 4)        // threads that look after all sleepers, four each: whole warps
#define PARTS (THREADS / LOOKING)     // such teams, which share the slots
#define SPELL 250                     // steps after which slots are given anew, to those who need one; at most
#define LENGTHS 4                     // of a block: 32, 16, 8 or 4 steps
#define LONGEST 32
#define FEW_WAKE 4                    // a block is so long that no more than these have to be woken, if that helps
#define TOGETHER 4                    // neurons that are woken at a time
#define AHEAD (COLUMNS % 24 ? COLUMNS / 16 : 6)  // fours of rates that are read ahead

struct Awake {  // in shared memory
    Shared shared;
    int id[SLOTS];                              // which neuron is in a slot
    alignas(16) real y[2][SLOTS];               // rates in the slots, before and after a step
    Four both[SLOTS / 2];                       // of two slots: rates added up since the block began, floors under them
    real total[SLOTS];                          // rates added up since the spell began
    real a[SLOTS], scale[SLOTS], shift[SLOTS];
    FourIds sleeper[LOOKING];                   // which neurons they are, or −1
    Four u[LOOKING], b[LOOKING], s[LOOKING];
    Four inhibition[PARTS][LOOKING], least[PARTS][LOOKING];
    int unsafe[WARPS][LENGTHS];                 // sleepers that might become active in a block of that length
    alignas(16) real row[TOGETHER][SLOTS], column[TOGETHER][SLOTS];  // of those who wake
    Four rest[REST / 4 * SLOTS];                // four columns of a row: see `rest_of`
    Four tile[TILED * LOOKING];
};
typedef Awake Memory;

// Columns 4 j to 4 j + 3 of row q, which are in shared memory.
DEVICE Four& rest_of(Awake& res, int j, int q) { return res.rest[(j - COLUMNS / 4) * SLOTS + q]; }

// The weights from slot q to four sleepers.
DEVICE void put_into_tile(Net& net, Awake& res, int q, int z, const Four& weights) {
    if (q < TILED)
        res.tile[q * LOOKING + z] = weights;
    else
        ((Four*)global(net.tile))[q * LOOKING + z] = weights;
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

struct Row {  // of a thread: of the neuron in its slot
    real m[COLUMNS];
    real u, y, before, b, s;   // `before`: y before the last step
    real sum, total, lowest;   // as in `Awake`
    real gain;                 // by how much it is still to grow, per rate
    long long c;
    bool grown, opened, fell;  // has it grown in this spell; is its gate open; is its rate below the floor?
};

// M̂ @ y for this row; where it GROWs, M̂ += gain yᵀ before that.
template <bool GROW> DEVICE real sweep(Awake& res, Row& own, const real* y, int slots) {
    real part[4] = {0, 0, 0, 0};  // sums that do not wait for each other
    Four rates[2][AHEAD];  // the next ones are on their way while these are used
    UNROLL for (int j = 0; j < AHEAD; j++) rates[0][j] = at_once((const Four*)y + j);
    UNROLL for (int first = 0; first < COLUMNS / 4; first += AHEAD) {
        const int turn = first / AHEAD % 2;
        if (first && 4 * first >= slots) break;
        if (first + AHEAD < COLUMNS / 4 && 4 * (first + AHEAD) < slots)
            UNROLL for (int j = 0; j < AHEAD; j++) rates[1 - turn][j] = at_once((const Four*)y + first + AHEAD + j);
        sync_warp();  // or each of them would be asked for when it is needed
        UNROLL for (int j = 0; j < AHEAD; j++)
            UNROLL for (int i = 0; i < 4; i++) {
                real& weight = own.m[4 * (first + j) + i];
                if (GROW) weight = plus(own.gain, rates[turn][j].of[i], weight);
                part[i] = plus(weight, rates[turn][j].of[i], part[i]);
            }
    }
    ROLLED for (int first = COLUMNS / 4; 4 * first < slots; first += 2) {
        Four some[2], weights[2];
        UNROLL for (int j = 0; j < 2; j++)
            some[j] = at_once((const Four*)y + first + j), weights[j] = at_once(&rest_of(res, first + j, THREAD));
        UNROLL for (int j = 0; j < 2; j++) {
            UNROLL for (int i = 0; i < 4; i++) {
                if (GROW) weights[j].of[i] = plus(own.gain, some[j].of[i], weights[j].of[i]);
                part[i] = plus(weights[j].of[i], some[j].of[i], part[i]);
            }
            if (GROW) rest_of(res, first + j, THREAD) = weights[j];
        }
    }
    if (GROW) own.gain = 0;
    return (part[0] + part[1]) + (part[2] + part[3]);
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
    Net& net, Awake& res, Row& own, const unsigned* found, int length, int earlier, int slots, int waking, int start, int k) {
    real* P = global(net.P);
    int stride = net.stride;
    UNROLL for (int e = 0; e < 4; e++) {
        unsigned lanes = vote(found[e] >> length & 1);
        if (found[e] >> length & 1) {
            int i = res.sleeper[THREAD].of[e];
            ROW(U)[i] = res.u[THREAD].of[e], TRUTH(OPENED)[i] = 0;
            res.id[slots + earlier + popcount(lanes & ((1u << LANE) - 1))] = i, res.sleeper[THREAD].of[e] = -1;
        }
        earlier += popcount(lanes);
    }
    sync();
    int q = THREAD;
    if (q >= slots && q < slots + waking) {
        int i = res.id[q];
        own.u = ROW(U)[i], own.y = own.before = 0, own.b = ROW(B)[i], own.s = ROW(S)[i];
        own.c = silent_gates(net, COUNT(C)[i], start, k).c;
        res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    }
    ROLLED for (int first = slots; first < slots + waking; first += TOGETHER) {
        int last = first + TOGETHER < slots + waking ? first + TOGETHER : slots + waking;
        real column[TOGETHER], row[TOGETHER];
        Four weights[TOGETHER];
        FourIds id = res.sleeper[q < LOOKING ? q : 0];
        UNROLL for (int w = 0; w < TOGETHER; w++) {
            int i = res.id[first + w < last ? first + w : first], other = q < last ? res.id[q] : i;
            const real* of = P + (size_t)i * stride;
            column[w] = of[other], row[w] = P[(size_t)other * stride + i];
            UNROLL for (int e = 0; e < 4; e++) weights[w].of[e] = of[id.of[e] < 0 ? i : id.of[e]];
        }
        UNROLL for (int w = 0; w < TOGETHER; w++) {
            res.row[w][q] = row[w], res.column[w][q] = column[w];
            if (q < LOOKING && first + w < last) put_into_tile(net, res, first + w, q, weights[w]);
        }
        sync();
        ROLLED for (int place = first; place < last; place++) {
            const real* of = res.row[place - first];
            if (q < first) {  // a column
                real weight = res.column[place - first][q];
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    if (j == place) own.m[j] = weight;
                if (place >= COLUMNS) rest_of(res, place / 4, q).of[place % 4] = weight;
            } else if (q == place) {  // a row
                UNROLL for (int first = 0; first < COLUMNS; first += 16) {
                    Four some[4];
                    UNROLL for (int j = 0; j < 4; j++) some[j] = at_once((const Four*)(of + first) + j);
                    UNROLL for (int j = 0; j < 16; j++) own.m[first + j] = some[j / 4].of[j % 4];
                }
                ROLLED for (int j = COLUMNS / 4; 4 * j < last; j++) rest_of(res, j, q) = *(const Four*)(of + 4 * j);
            }
        }
        sync();
    }
}

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Awake& res, const Row& own, int k, long long t, int slots) {
    if (net.trace_y && THREAD < slots) global(net.trace_y)[t * net.n + res.id[THREAD]] = own.y;
    if (net.trace_burst && THREAD < slots) global(net.trace_burst)[t * net.n + res.id[THREAD]] = own.opened;
    int more_than_0 = popcount(vote(own.y > 0)), not_0 = popcount(vote(own.y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
    if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if it does not
// pay. `again` says that it may do so from there on; else all neurons take some steps.
DEVICE int run_few(Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again) {
    int slots, sleepers, start = k, hold = net.hold, stride = net.stride, end = choose(net, res, k, slots, sleepers);
    SPENT(ON_CHOOSING)
    again = false;
    if (end == k) return k;
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    real unused, x_x = net.x_x, floor = net.floor, *P = global(net.P);
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = net.dynamics[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = net.schedule[j];
    UNROLL for (int j = 0; j < RULE_CONSTANTS; j++) rule[j] = net.rule[j];
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;
    // If inhibition moves silent neurons away from the threshold, they have some time to come back. Else a drive above 0
    // wakes them at once, so that floors must be close to the rates, and nothing is gained by the shortest blocks.
    real drifted;
    step(dynamics, 0, 0, 0, -1, 0, drifted, unused, unused, unused);
    int longest = drifted < 0 ? 0 : 1;
    real share = (real)(drifted < 0 ? 0.95 : 0.995), fall_by = (real)(drifted < 0 ? 1.5 : 1.2) * (LONGEST >> longest);

    // What the slots and the sleepers begin with.
    int q = THREAD, i = q < slots ? LIST(LISTED)[q] : -1;
    res.id[q] = i;
    if (i < 0) i = 0;
    Row own;
    own.u = ROW(U)[i], own.y = own.before = q < slots ? ROW(Y)[i] : (real)0, own.b = ROW(B)[i], own.s = ROW(S)[i];
    own.c = COUNT(C)[i], own.sum = own.total = own.gain = 0, own.grown = false;
    res.y[0][q] = own.y, res.y[1][q] = 0;
    res.a[q] = ROW(A)[i], res.scale[q] = ROW(SCALE)[i], res.shift[q] = ROW(SHIFT)[i];
    if (q < LOOKING)
        UNROLL for (int e = 0; e < 4; e++) {
            int j = 4 * q + e < sleepers ? LIST(ACTIVE)[4 * q + e] : -1;
            res.sleeper[q].of[e] = j;
            if (j < 0) j = 0;
            res.u[q].of[e] = ROW(U)[j], res.b[q].of[e] = ROW(B)[j], res.s[q].of[e] = ROW(S)[j];
        }
    if (q == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0;
    sync();
    UNROLL for (int j = 0; j < COLUMNS; j++)
        own.m[j] = q < slots && j < slots ? P[(size_t)res.id[j] * stride + i] : (real)0;
    ROLLED for (int first = COLUMNS; first < SLOTS; first += 4) {
        Four weights;
        UNROLL for (int j = 0; j < 4; j++)
            weights.of[j] = q < slots && first + j < slots ? P[(size_t)res.id[first + j] * stride + i] : (real)0;
        rest_of(res, first / 4, q) = weights;
    }
    if (4 * (q % LOOKING) < sleepers) {
        FourIds id = res.sleeper[q % LOOKING];
        ROLLED for (int first = q / LOOKING; first < slots && q < PARTS * LOOKING; first += 4 * PARTS) {
            Four weights[4];
            UNROLL for (int j = 0; j < 4; j++) {
                const real* column = P + (size_t)res.id[first + j * PARTS < slots ? first + j * PARTS : first] * stride;
                UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] = column[id.of[e] < 0 ? 0 : id.of[e]];
            }
            UNROLL for (int j = 0; j < 4; j++)
                if (first + j * PARTS < slots) put_into_tile(net, res, first + j * PARTS, q % LOOKING, weights[j]);
        }
    }

    SPENT(ON_LOADING)
    real *now = res.y[0], *next = res.y[1];
    bool odd = false;
    int moved = k;
    while (true) {
        real fall = own.y < own.before ? own.y - own.before : (real)0;
        own.lowest = share * own.y + fall_by * fall;
        own.lowest = own.lowest > 0 ? own.lowest : (real)0;
        ((real*)res.both)[2 * q] = own.sum, ((real*)res.both)[2 * q + 1] = own.lowest;
        own.total += own.sum, own.sum = 0;
        sync();
        inhibit_sleepers(net, res, slots, sleepers);
        sync();
        unsigned found[4];
        look_after(res, dynamics, sleepers, k - moved, found);
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
        bool any = slots > WARP * 32, is_one = q < slots, attention = false;
        ROLLED for (int left = LONGEST >> length; left && k < end && !attention; left--) {  // steps
            own.opened = own.fell = false;
            bool strange = false;
            if (any) {
                // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
                real felt = vote_any(own.gain != 0) ? sweep<true>(res, own, now, slots) : sweep<false>(res, own, now, slots);
                real beta, new_u, new_y;
                long long new_c;
                own.sum += own.y, own.before = own.y;
                step(dynamics, own.u, 0, 0, own.b - own.s * felt, 0, new_u, new_y, unused, unused);
                own.u = new_u, own.y = is_one ? new_y : (real)0, next[q] = own.y;
                gate(schedule, new_y, 0, own.c, k, hold, beta, new_c);
                own.c = new_c, own.opened = is_one && beta != 0, own.fell = is_one && !(new_y >= own.lowest);
                if (own.opened) {
                    Terms terms = terms_of_update(rule, own.y, res.a[q]);
                    strange = odd_W(terms, res.scale[q]) || odd_M(floor, terms, own.s);
                }
            }
            if (traced) trace(net, res, own, k, hold_start + k, slots);
            attention = sync_or(own.fell || strange);
            if (attention) odd = sync_or(strange);
            if (own.opened) {
                // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, but M̂ itself when it is read again
                if (odd)
                    TRUTH(OPENED)[res.id[q]] = 1;  // left to `update`
                else {
                    Terms terms = terms_of_update(rule, own.y, res.a[q]);
                    res.a[q] = terms.a;
                    res.scale[q] *= terms.keep_w;
                    res.shift[q] = terms.keep_w * res.shift[q] + terms.gain;
                    own.b = terms.keep_w * own.b + terms.gain * x_x;
                    own.s *= terms.keep_m;
                    own.gain = terms.gain * reciprocal(own.s);
                    own.grown |= own.gain != 0;
                    if (net.trace_updates)
                        add_to(&global(net.trace_updates)[hold_start + k],
                               synapses_changed(net, terms, own.y, pixels, (int)res.shared.active[k % 3]));
                }
            }
            real* rates = now;
            now = next, next = rates;
            k++;
        }
        SPENT(ON_STEPS)
    }
    if (vote_any(own.gain != 0)) sweep<true>(res, own, now, slots);
    if (q < slots) {
        i = res.id[q];
        ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(B)[i] = own.b, ROW(S)[i] = own.s, COUNT(C)[i] = own.c;
        ROW(A)[i] = res.a[q], ROW(SCALE)[i] = res.scale[q], ROW(SHIFT)[i] = res.shift[q], res.total[q] = own.total;
        if (own.grown) {
            TRUTH(GROWN)[i] = 1;
            UNROLL for (int j = 0; j < COLUMNS; j++)
                if (j < slots) P[(size_t)res.id[j] * stride + i] = own.m[j];
            ROLLED for (int j = COLUMNS; j < slots; j++)
                P[(size_t)res.id[j] * stride + i] = rest_of(res, j / 4, q).of[j % 4];
        }
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
        int active = list_active(net, res.shared);
        update(net, x, pixels, active, hold_start + k - 1);
    }
    SPENT(ON_FAR)
    again = !odd && k > start && k < hold - 1;
    return k;
}
