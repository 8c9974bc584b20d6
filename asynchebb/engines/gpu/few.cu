// Awake neurons are run, and the others looked after.

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

// Bring the columns of these slots up to date, so many at a time, and copy what is awake to the tile.
template <int AT_ONCE> DEVICE void fetch(Awake& res, int first, int last) {
    Net& net = res.shared.net;
    int pitch = PITCH;
    real* row[4];
    read_columns<AT_ONCE, 4>(
        net, OF_M, first, last, [&](int slot) { return res.id[slot]; },
        [&](int first_row) {
            UNROLL for (int e = 0; e < 4; e++) {
                int of = first_row + e < net.n ? res.row[first_row + e] : ASLEEP;
                row[e] = of >= 0 ? res.tile + of : nullptr;
            }
        },
        [&](int slot, bool, const Four& weights) {
            UNROLL for (int e = 0; e < 4; e++)
                if (row[e]) row[e][slot * pitch] = weights.of[e];
        },
        [](int, int) {});
}

// Neurons get the slots from first to last: which they are is known. Those in the first `others` slots act on them: what
// they feel of these is read as well, of at most ROWS neurons. All that is read is on its way at once.
template <int AT_ONCE, int ROWS> OUTLINED void load(int first, int last, int others, int now, int k) {
    HERE;
    int slot = first + THREAD, i = slot < last ? res.id[slot] : 0;
    real u = res.sleeper_u[i], b = res.sleeper_b[i], s = res.sleeper_s[i];
    real a = ROW(A)[i], scale = ROW(SCALE)[i], shift = ROW(SHIFT)[i], y = ROW(Y)[i], before = ROW(BEFORE)[i];
    long long c = COUNT(C)[i];
    real felt_of[ROWS > 0 ? ROWS : 1];
    auto felt_from = [&](int other, int w) {
        return global(net.P) + (size_t)res.id[other] * net.stride + res.id[first + w < last ? first + w : first];
    };
    int other = (int)THREAD < others ? (int)THREAD : 0;
    UNROLL for (int w = 0; w < ROWS; w++) felt_of[w] = *felt_from(other, w);
    fetch<AT_ONCE>(res, first, last);
    int pitch = PITCH;
    UNROLL for (int w = 0; w < ROWS; w++)
        if ((int)THREAD < others && first + w < last) res.tile[THREAD * pitch + first + w] = felt_of[w];
    if (ROWS > 0)
        ROLLED for (int other = THREAD + THREADS; other < others; other += THREADS)  // where there are more slots than threads
            for (int w = 0; first + w < last; w++) res.tile[other * pitch + first + w] = *felt_from(other, w);
    if (slot < last) {
        res.u[slot] = u, res.b[slot] = b, res.s[slot] = s, res.a[slot] = a, res.scale[slot] = scale, res.shift[slot] = shift;
        res.sum[slot] = res.floors[0][slot] = res.floors[FLOORS - 1][slot] = res.felt[slot] = 0, res.grown[slot] = 0;
        res.y[now + slot] = y, res.y[RATES - now + slot] = k ? before : y;  // before the last step
        res.total[slot] = -y;  // `sum` is of the rates before each step
        res.c[slot] = silent_gates(net, c, LIST(SINCE)[i], k).c;
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

// Put the weights of the listed slots back where they belong: those of their columns that have grown, and rows that have.
DEVICE void store_listed(Awake& res, int count, int slots) {
    Net& net = res.shared.net;
    int pitch = PITCH, stride = net.stride;
    real* P = global(net.P);
    for EACH(other, slots) {
        bool grown = res.grown[other];
        int id = res.id[other];
        ROLLED for (int t = 0; t < count; t++) {
            int slot = res.listed[t], i = res.id[slot];
            bool row_too = res.grown[slot];
            real down = res.tile[slot * pitch + other], across = res.tile[other * pitch + slot];
            if (grown) P[i * stride + id] = down;
            if (row_too) P[id * stride + i] = across;
        }
    }
}

// Put all weights back that have grown.
DEVICE void store_all(Awake& res, int slots) {
    const int AT_ONCE = 4;
    Net& net = res.shared.net;
    int pitch = PITCH, stride = net.stride;
    for EACH(row, slots) {
        if (!res.grown[row]) continue;
        real* P = global(net.P) + res.id[row];
        ROLLED for (int first = 0; first < slots; first += AT_ONCE) {
            real weights[AT_ONCE];
            int places[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                int slot = first + j < slots ? first + j : first;
                weights[j] = res.tile[slot * pitch + row], places[j] = res.id[slot] * stride;
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++) P[places[j]] = weights[j];
        }
    }
}

// Slots of neurons that are silent, and stay so for the longest block if they are inhibited as they are now, if it pays
// to put them to sleep. Gives how many there are; they are listed.
OUTLINED int tired(int slots, int now, int k, int end) {
    HERE;
    int count = list_where(res.shared, slots, res.listed, [&](int slot) {
        if (res.y[now + slot] != 0 || res.sum[slot] != 0) return false;
        real drive = res.b[slot] - FLOOR * res.s[slot] * res.felt[slot];
        drive = drive <= 0 ? (real)0 : drive;
        if (might_wake(res.dynamics, res.u[slot], LONGEST * drive)) return false;
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
    int left = slots - tired, pitch = PITCH;
    store_listed(res, tired, slots);
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
    int* stay = (int*)res.acts.of;
    for EACH(slot, slots) {
        if (slot < left || res.row[res.id[slot]] < 0) continue;
        int before = slot - left;
        ROLLED for (int t = 0; t < tired; t++) before -= res.listed[t] >= left && res.listed[t] < slot;
        stay[before] = slot;
    }
    sync();
    int moves = 0;
    ROLLED while (moves < tired && res.listed[moves] < left) moves++;
    const int* to = res.listed;
    for EACH(row, slots)
        move_several(
            moves, [&](int t) { return res.tile + to[t] * pitch + row; },
            [&](int t) { return res.tile + stay[t] * pitch + row; });
    sync();
    for EACH(column, left) {
        real* of = res.tile + column * pitch;
        move_several(moves, [&](int t) { return of + to[t]; }, [&](int t) { return of + stay[t]; });
    }
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

// Give the next slots to those who wake, who are listed.
DEVICE void wake(Awake& res, int slots, int waking, int now, int k) {
    Net& net = res.shared.net;
    const int AT_ONCE = 8, TOGETHER = 16;
    for EACH(w, waking) {
        int slot = slots + w, i = res.listed[w];
        res.id[slot] = i, res.row[i] = slot, TRUTH(OPENED)[i] = 0;
        if (net.trace_burst) trace_silence(net, res.shown, i, LIST(SINCE)[i], k);
    }
    sync();
    ROLLED for (int first = slots; first < slots + waking; first += TOGETHER)
        load<AT_ONCE, TOGETHER>(first, first + TOGETHER < slots + waking ? first + TOGETHER : slots + waking, slots, now, k);
}

// Run the awake neurons from step k on, and look after the others. Gives the step that was reached: k if there are too
// many of them. `shown` says how to go on from there.
OUTLINED int run_few(int k) {
    HERE;
    Chosen chosen = choose(k);
    int slots = chosen.slots, end = chosen.end, start = k, now = 0;
    SPENT(ON_CHOOSING)
    if (end == k) {
        if (THREAD == 0) res.shown.again = false, res.shown.spell = SHORTEST;
        sync();
        return k;
    }
    bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;
    for EACH(j, 2 * RATES) res.y[j] = 0;
    for EACH(j, POOL / 4) ((Four*)res.tile)[j] = {0, 0, 0, 0};
    if (THREAD == 0) res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
    sync();
    ROLLED for (int first = 0; first < slots; first += THREADS)
        load<16, 0>(first, first + THREADS < slots ? first + THREADS : slots, 0, now, k);
    SPENT(ON_LOADING)

    bool odd = false;  // has a row to be rectified?
    int looked = k, rested = k;  // when sleepers were looked after, and when it was looked for those who tire
    while (true) {
        sync();
        odd = res.odd;
        for EACH(slot, slots) res.total[slot] += res.sum[slot];
        if (k == end || odd) break;
        if (k >= rested + (slots + FEW_SLEEP > SLOTS ? LONGEST / 8 : LONGEST)) {
            rested = k;
            if (int leaving = tired(slots, now, k, end)) slots = put_to_sleep(slots, leaving, now, k, end);
        }
        for EACH(slot, ALL_SLOTS) {
            if (slot >= slots) {
                res.sum[slot] = res.floors[0][slot] = res.floors[FLOORS - 1][slot] = 0;
                continue;
            }
            real y = res.y[now + slot], before = res.y[RATES - now + slot], fall = y < before ? y - before : (real)0;
            real lowest = FLOOR * y + (real)(1.5 * FORESEEN) * fall;
            real higher = FLOOR_IF_SHORT * y + (real)(1.5 * FORESEEN_IF_SHORT) * fall;
            if (FLOORS > 1) res.floors[FLOORS - 1][slot] = higher > 0 ? higher : (real)0;
            res.floors[0][slot] = lowest > 0 ? lowest : (real)0;
        }
        if (THREAD == 0) res.y[FLAG] = res.y[RATES + FLAG] = 0;
        check(slots, k - looked);
        looked = k;
        SPENT(ON_SLEEPERS)
        for EACH(slot, slots) res.sum[slot] = 0;
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
        if (THREAD == 0) res.block = {k, left, slots, now, length >= SHORT};
        sync();
        if (has_slots(slots)) {
            k = take_any_steps(slots, traced);
            if (THREAD == 0) res.reached = k;
        } else if (slots == 0 && THREAD == 0)
            res.reached = k + left;
        sync();
        k = res.reached;
        if ((k - before_them) % 2) now = RATES - now;
        SPENT(ON_STEPS)
    }
    sync();
    if (k > looked) check(slots, k - looked);
    for EACH(slot, slots) unload(res, slot, now);
    store_all(res, slots);
    sync();
    SPENT(ON_STORING)
    if (net.trace_burst)
        for EACH(i, net.n)
            if (res.row[i] < 0) trace_silence(net, res.shown, i, LIST(SINCE)[i], k);
    for EACH(i, net.n)
        if (res.row[i] < 0) {
            ROW(U)[i] = res.sleeper_u[i];
            close_silent(net, i, LIST(SINCE)[i], k, odd, res.shown.hold_start + k - 1);
        }
    sync();
    if (odd) {  // the gates of step k − 1 are open, and a row has to be rectified
        refresh_all(net, res.shared);
        int active = list_active(net, res.shared);
        update(net, res.shared, res.shown.x, res.shared.pixels, active, res.shown.hold_start + k - 1);
    }
    forget_columns(net);  // the tile was needed
    SPENT(ON_CLOSING)
    if (THREAD == 0) {
        Shown& shown = res.shown;
        shown.again = !odd && k - start >= WORTHWHILE && k < net.hold - 1;
        shown.spell = k > start ? SHORTEST : shown.spell < WORTHWHILE ? 2 * shown.spell : WORTHWHILE;
    }
    sync();
    return k;
}
