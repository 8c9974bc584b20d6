// Neurons that sleep: silent ones that need not be run, since they stay silent.
//
// They are looked after between blocks of steps. From a floor under each rate follows a bound on the drive of each sleeper,
// and those that it does not keep silent for the length of the block are woken beforehand. The block ends when a rate falls
// below its floor, so that what is computed is exact, and never undone. Awake neurons that are silent, and will be for a
// while, fall asleep again.

// May this silent neuron sleep from step k up to `end`? Not if it moves by itself, nor if its gate opens before the
// hold's last step. If it opens at that one, as with a discrete schedule, it OPENS.
DEVICE bool may_sleep(Net& net, real u, real a, long long c, int k, int end, bool& opens) {
    real still, unused;
    step(net.dynamics, u, 0, 0, 0, 0, still, unused, unused, unused);
    opens = false;
    if (net.all_near || still != u) return false;
    int opening = silent_gates(net, c, k, end).opens;
    if (opening == end || stays(net, a)) return true;
    opens = true;
    return opening == net.hold - 1;
}

// Has a silent neuron's row to be rectified when its gate opens?
DEVICE bool odd_when_silent(Net& net, real a, real scale, real s) {
    Terms terms = terms_of_update(net.rule, 0, a);
    return odd_W(terms, scale) || odd_M(net.floor, terms, s);
}

// Give slots to those who are awake at step k. Gives the step up to which the others may sleep; k if too many are awake.
struct Chosen { int end, slots; };

OUTLINED Chosen choose(int k) {
    HERE;
    real *us = ROW(U), *ys = ROW(Y), *as = ROW(A);
    unsigned char* opened = TRUTH(OPENED);
    int *list = LIST(LISTED), n = net.n, end = net.hold;
    bool ends_early = false;
    int slots = list_where(res.shared, n, list, [&](int i) {
        real u = us[i];
        res.sleeper_u[i] = u, res.sleeper_b[i] = ROW(B)[i], res.sleeper_s[i] = ROW(S)[i];
        bool opens, sleeps = ys[i] == 0 && may_sleep(net, u, as[i], COUNT(C)[i], k, end, opens);
        opened[i] = sleeps && opens;
        if (opened[i]) ends_early |= odd_when_silent(net, as[i], ROW(SCALE)[i], ROW(S)[i]);
        res.row[i] = ASLEEP, LIST(SINCE)[i] = k;
        return !sleeps;
    });
    if (slots > SLOTS) return {k, 0};
    if (sync_or(ends_early)) {  // all neurons take the last step
        end -= 1;
        for EACH(i, n) opened[i] = 0;
    }
    for EACH(slot, slots) res.id[slot] = list[slot], res.row[list[slot]] = slot;
    sync();
    return {end, slots};
}

// Bring the columns of these slots up to date, and copy what is awake to the tile.
DEVICE void fetch(Awake& res, int first, int last) {
    Net& net = res.shared.net;
    int row[4];
    read_columns<16>(
        net, OF_M, first, last, [&](int slot) { return res.id[slot]; },
        [&](int first_row) {
            UNROLL for (int e = 0; e < 4; e++) row[e] = first_row + e < net.n ? res.row[first_row + e] : -1;
        },
        [&](int slot, const Four& weights) {
            UNROLL for (int e = 0; e < 4; e++)
                if (row[e] >= 0) res.tile[slot * PITCH + row[e]] = weights.of[e];
        },
        [](int, int) {});
}

// Neurons get the slots from first to last: which they are is known. All that is read is on its way at once.
OUTLINED void load(int first, int last, int now, int k) {
    HERE;
    int slot = first + THREAD, i = slot < last ? res.id[slot] : 0, since = LIST(SINCE)[i];
    real u = res.sleeper_u[i], b = res.sleeper_b[i], s = res.sleeper_s[i];
    real a = ROW(A)[i], scale = ROW(SCALE)[i], shift = ROW(SHIFT)[i], y = ROW(Y)[i], before = ROW(BEFORE)[i];
    long long c = COUNT(C)[i];
    fetch(res, first, last);
    if (slot < last) {
        res.u[slot] = u, res.b[slot] = b, res.s[slot] = s, res.a[slot] = a, res.scale[slot] = scale, res.shift[slot] = shift;
        res.sum[slot] = res.lowest[slot] = res.higher[slot] = res.felt[slot] = 0, res.grown[slot] = 0;
        res.y[now + slot] = y, res.y[RATES - now + slot] = k ? before : y;  // before the last step
        res.total[slot] = -y;  // `sum` is of the rates before each step
        res.c[slot] = silent_gates(net, c, since, k).c;
    }
    sync();
}

// And gives it back.
DEVICE void unload(Awake& res, int slot, int now) {
    Net& net = res.shared.net;
    int i = res.id[slot];
    real y = res.y[now + slot];
    ROW(U)[i] = res.u[slot], ROW(Y)[i] = y, ROW(B)[i] = res.b[slot], ROW(S)[i] = res.s[slot], ROW(A)[i] = res.a[slot];
    ROW(SCALE)[i] = res.scale[slot], ROW(SHIFT)[i] = res.shift[slot], COUNT(C)[i] = res.c[slot];
    ROW(BEFORE)[i] = res.y[RATES - now + slot], ROW(ALL_RATES)[i] += res.total[slot] + y;
}

// Put the weights of this slot back where they belong: those of its column that have grown, and its row if it has.
DEVICE void store(Awake& res, int slot, int slots, bool and_row) {
    Net& net = res.shared.net;
    real* column = global(net.P) + (size_t)res.id[slot] * net.stride;
    for EACH(other, slots) {
        if (res.grown[other]) column[res.id[other]] = res.tile[slot * PITCH + other];
        if (and_row && res.grown[slot])
            global(net.P)[(size_t)res.id[other] * net.stride + res.id[slot]] = res.tile[other * PITCH + slot];
    }
}

// Slots of neurons that are silent, and stay so for the longest block if they are inhibited as they are now, if it pays
// to put them to sleep. Gives how many there are; they are listed.
OUTLINED int tired(int slots, int now, int k, int end) {
    HERE;
    int count = list_where(res.shared, slots, res.listed, [&](int slot) {
        if (res.y[now + slot] != 0 || res.sum[slot] != 0) return false;
        real drive = res.b[slot] - FLOOR * res.s[slot] * res.felt[slot], new_u, new_y, unused;
        drive = drive <= 0 ? (real)0 : drive;
        step(res.dynamics, res.u[slot], 0, 0, LONGEST * drive, 0, new_u, new_y, unused, unused);
        if (!(new_y <= 0)) return false;
        bool opens;
        return may_sleep(net, res.u[slot], res.a[slot], res.c[slot], k, end, opens) &&
               !(opens && odd_when_silent(net, res.a[slot], res.scale[slot], res.s[slot]));
    });
    return count >= FEW_SLEEP || slots + FEW_WAKE > SLOTS ? count : 0;
}

template <typename T> DEVICE void move(T* array, int to, int from) { array[to] = array[from]; }

// Put those in the listed slots to sleep. The last of the others take their places. Gives how many are left.
OUTLINED int put_to_sleep(int slots, int tired, int now, int k, int end) {
    HERE;
    int left = slots - tired;
    ROLLED for (int t = 0; t < tired; t++) store(res, res.listed[t], slots, true);
    for EACH(t, tired) {
        int slot = res.listed[t], i = res.id[slot];
        bool opens;
        unload(res, slot, now);
        res.sleeper_u[i] = res.u[slot], res.sleeper_b[i] = res.b[slot], res.sleeper_s[i] = res.s[slot];
        may_sleep(net, res.u[slot], res.a[slot], res.c[slot], k, end, opens);
        TRUTH(OPENED)[i] = opens;
        LIST(SINCE)[i] = k, res.row[i] = JUST_ASLEEP;
    }
    sync();
    // Those who stay, from the end on, for the places of those who do not.
    int* stay = (int*)res.acts;
    for EACH(slot, slots) {
        if (slot < left || res.row[res.id[slot]] < 0) continue;
        int before = slot - left;
        ROLLED for (int t = 0; t < tired; t++) before -= res.listed[t] >= left && res.listed[t] < slot;
        stay[before] = slot;
    }
    sync();
    int moves = 0;
    ROLLED while (moves < tired && res.listed[moves] < left) moves++;
    for EACH(row, slots)
        ROLLED for (int t = 0; t < moves; t++)
            res.tile[res.listed[t] * PITCH + row] = res.tile[stay[t] * PITCH + row];
    sync();
    for EACH(column, left)
        ROLLED for (int t = 0; t < moves; t++)
            res.tile[column * PITCH + res.listed[t]] = res.tile[column * PITCH + stay[t]];
    for EACH(t, moves) {
        int to = res.listed[t], from = stay[t];
        move(res.u, to, from), move(res.b, to, from), move(res.s, to, from), move(res.a, to, from);
        move(res.scale, to, from), move(res.shift, to, from), move(res.sum, to, from), move(res.felt, to, from);
        move(res.total, to, from), move(res.c, to, from), move(res.id, to, from), move(res.grown, to, from);
        move(res.y, to, from), move(res.y + RATES, to, from);
        res.row[res.id[to]] = to;
    }
    sync();
    for EACH(t, tired) res.y[left + t] = res.y[RATES + left + t] = 0;
    sync();
    return left;
}

// Move the sleepers by the steps of the last block, and find those that might become active in the next: how many, by
// its length (`counts`), and which (`unsafe`).
OUTLINED void check(int slots, int steps) {
    HERE;
    const int AT_ONCE = READ_AT_ONCE;
    int stride = net.stride;
    int count = number_where(
        res.shared, slots, [&](int slot) { return res.sum[slot] != 0 || res.higher[slot] != 0; },
        [&](int slot, int place) {
            res.acts[place] = {res.sum[slot], res.lowest[slot], res.higher[slot], 0};
            res.listed[place] = res.id[slot] * stride;
        });
    // What is read too much counts for nothing; to choose between weights would wait for each of them.
    for EACH(q, AT_ONCE * SHARERS) res.acts[count + q] = {0, 0, 0, 0}, res.listed[count + q] = 0;
    sync();
    int n = net.n, n_4 = (n + 3) / 4, team = THREAD / LOOKING;
    ROLLED for (int four = THREAD % LOOKING; four < n_4; four += LOOKING) {
        Four felt[3] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
        const real* P = global(net.P) + 4 * four;
        ROLLED for (int first = team * AT_ONCE; first < count; first += AT_ONCE * SHARERS) {
            Four weights[AT_ONCE];
            FourIds places[AT_ONCE / 4];
            UNROLL for (int j = 0; j < AT_ONCE / 4; j++) places[j] = at_once((const FourIds*)(res.listed + first) + j);
            UNROLL for (int j = 0; j < AT_ONCE; j++) weights[j] = streamed((const Four*)(P + places[j / 4].of[j % 4]));
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                Four acts = at_once(res.acts + first + j);
                UNROLL for (int f = 0; f < 3; f++)
                    UNROLL for (int e = 0; e < 4; e++) felt[f].of[e] = plus(weights[j].of[e], acts.of[f], felt[f].of[e]);
            }
        }
        UNROLL for (int f = 0; f < 3; f++) *(Four*)(res.felt_by[team][f] + 4 * four) = felt[f];
    }
    sync();
    real dynamics[DYNAMICS_CONSTANTS], unused;
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    Counts counts = {0, 0};
    ROLLED for EACH(i, n) {
        real u = res.sleeper_u[i], b = res.sleeper_b[i], s = res.sleeper_s[i], felt[3] = {0, 0, 0}, new_u, new_y;
        unsigned unsafe = 0;
        int row = res.row[i];
        UNROLL for (int t = 0; t < SHARERS; t++)
            UNROLL for (int f = 0; f < 3; f++) felt[f] += res.felt_by[t][f][i];
        if (row < 0) {
            step(dynamics, u, 0, 0, (real)steps * b - s * felt[0], 0, new_u, new_y, unused, unused);
            if (steps && row == ASLEEP) res.sleeper_u[i] = u = new_u;
            if (row == JUST_ASLEEP) res.row[i] = ASLEEP;
            UNROLL for (int l = 0; l < LENGTHS; l++) {
                real drive = b - s * felt[l < SHORT ? 1 : 2];
                drive = drive <= 0 ? (real)0 : drive;
                step(dynamics, u, 0, 0, (real)(LONGEST >> l) * drive, 0, new_u, new_y, unused, unused);
                unsigned might = !(new_y <= 0);
                unsafe |= might << l;
                (l < 3 ? counts.first : counts.second) += might << l % 3 * 10;
            }
        }
        res.unsafe[i] = unsafe;
    }
    counts.first = sum_of_warp(counts.first), counts.second = sum_of_warp(counts.second);
    if (LANE == 0) res.counts[WARP] = counts;
    sync();
}

DEVICE int count_of(const Counts& counts, int length) {
    return (length < 3 ? counts.first : counts.second) >> length % 3 * 10 & 1023;
}

// Give the next slots to those who wake, who are listed.
DEVICE void wake(Awake& res, int slots, int waking, int now, int k) {
    Net& net = res.shared.net;
    const int AT_ONCE = 8;
    for EACH(w, waking) {
        int slot = slots + w, i = res.listed[w];
        res.id[slot] = i, res.row[i] = slot, TRUTH(OPENED)[i] = 0;
    }
    // What they feel; what they do to others comes with their columns.
    for EACH(slot, slots) {
        const real* column = global(net.P) + (size_t)res.id[slot] * net.stride;
        ROLLED for (int first = 0; first < waking; first += AT_ONCE) {
            real weights[AT_ONCE];
            UNROLL for (int w = 0; w < AT_ONCE; w++) weights[w] = column[res.listed[first + w < waking ? first + w : first]];
            UNROLL for (int w = 0; w < AT_ONCE; w++)
                if (first + w < waking) res.tile[slot * PITCH + slots + first + w] = weights[w];
        }
    }
    sync();
    ROLLED for (int first = slots; first < slots + waking; first += THREADS)
        load(first, first + THREADS < slots + waking ? first + THREADS : slots + waking, now, k);
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if there are too
// many of them. `again` says that it may do so from there on; else all neurons take so many steps: more if it was tried in
// vain.
DEVICE int run_few(
    Net& net, Awake& res, const real* x, int pixels, long long hold_start, int k, bool& again, int& spell) {
    Chosen chosen = choose(k);
    int slots = chosen.slots, end = chosen.end, start = k, now = 0;
    SPENT(ON_CHOOSING)
    again = false;
    if (end == k) {
        spell = SHORTEST;
        return k;
    }
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;
    for EACH(j, 2 * RATES) res.y[j] = 0;
    if (THREAD == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
    sync();
    ROLLED for (int first = 0; first < slots; first += THREADS)
        load(first, first + THREADS < slots ? first + THREADS : slots, now, k);
    SPENT(ON_LOADING)

    bool odd = false;  // has a row to be rectified?
    int moved = k, rested = k;  // when sleepers were looked after, and when it was looked for those who tire
    while (true) {
        sync();
        odd = res.odd;
        bool ended = k == end || odd;
        if (k >= rested + LONGEST / 2 && !ended) {
            rested = k;
            if (int leaving = tired(slots, now, k, end)) slots = put_to_sleep(slots, leaving, now, k, end);
        }
        for EACH(slot, slots) {
            real y = res.y[now + slot], before = res.y[RATES - now + slot], fall = y < before ? y - before : (real)0;
            real lowest = FLOOR * y + (real)(1.5 * FORESEEN) * fall;
            real higher = FLOOR_IF_SHORT * y + (real)(1.5 * FORESEEN_IF_SHORT) * fall;
            res.lowest[slot] = lowest > 0 ? lowest : (real)0, res.higher[slot] = higher > 0 ? higher : (real)0;
            res.total[slot] += res.sum[slot];
        }
        for EACH(j, 2 * GROUP) res.y[j / GROUP * RATES + FLAGS + j % GROUP] = 0;
        check(slots, k - moved);
        moved = k;
        SPENT(ON_SLEEPERS)
        for EACH(slot, slots) res.sum[slot] = 0;
        if (ended) break;
        int waking[LENGTHS] = {0, 0, 0, 0, 0};
        ROLLED for (int w = 0; w < WARPS; w++) {
            Counts counts = res.counts[w];
            UNROLL for (int l = 0; l < LENGTHS; l++) waking[l] += count_of(counts, l);
        }
        int length = LENGTHS - 1, woken = waking[LENGTHS - 1];
        UNROLL for (int l = LENGTHS - 2; l >= 0; l--)
            if ((waking[l] <= FEW_WAKE && slots + waking[l] <= SLOTS) || waking[l] == waking[LENGTHS - 1])
                length = l, woken = waking[l];
        if (slots + woken > SLOTS) break;
        if (woken) {
            list_where(res.shared, net.n, res.listed, [&](int i) { return res.unsafe[i] >> length & 1; });
            wake(res, slots, woken, now, k);
            slots += woken;
        }
        SPENT(ON_WAKING)
        int left = end - k < LONGEST >> length ? end - k : LONGEST >> length, before_them = k;
        sync();
        if (has_slots(slots)) {
            Block block = {k, left, slots, now, pixels, length >= SHORT, hold_start};
            k = take_any_steps(block, traced);
            if (THREAD == 0) res.reached = k;
        } else if (slots == 0 && THREAD == 0)
            res.reached = k + left;
        sync();
        k = res.reached;
        if ((k - before_them) % 2) now = RATES - now;
        SPENT(ON_STEPS)
    }
    sync();
    for EACH(slot, slots) unload(res, slot, now);
    ROLLED for (int slot = 0; slot < slots; slot++) store(res, slot, slots, false);
    sync();
    SPENT(ON_STORING)
    for EACH(i, net.n)
        if (res.row[i] < 0) {
            ROW(U)[i] = res.sleeper_u[i];
            close_silent(net, i, LIST(SINCE)[i], k, odd, hold_start + k - 1);
        }
    sync();
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        refresh_all(net, res.shared);
        int active = list_active(net, res.shared);
        update(net, res.shared, x, pixels, active, hold_start + k - 1);
    }
    forget_columns(net);  // the tile was needed
    SPENT(ON_CLOSING)
    again = !odd && k - start >= WORTHWHILE && k < net.hold - 1;
    spell = k > start ? SHORTEST : spell < WORTHWHILE ? 2 * spell : WORTHWHILE;
    return k;
}
