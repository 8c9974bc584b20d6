// Columns come when they are needed, or soon will be.

// Which columns come, and which go for them: those of neurons that have become active come, and if it can be done at the same
// time, of those that soon will be; they take the places of neurons that are silent, and will be for a while.
struct Coming {
    int count, left;  // how many come, and how many more are needed; these are −1 if there is no room
    bool acted;       // have those that go acted on idle neurons since these were moved?
};

OUTLINED Coming give_places() {
    HERE;
    int row = ROW_OF((int)THREAD), i = res.id[row], column = i < 0 ? -1 : res.column[i];
    bool active = i >= 0 && ROW(Y)[i] != 0, is_unused = false;
    bool soon = i >= 0 && !active &&
                might_wake(res.dynamics, ROW(U)[i], FORESEEN * (ROW(B)[i] - ROW(S)[i] * res.inhibition[row]));
    bool wants = active && column < 0, might = soon && column < 0;
    unsigned wanted = vote(wants), foreseen = vote(might);
    if (LANE == 0) res.wanted[WARP] = wanted, res.others[WARP] = foreseen;
    if (column >= 0) res.kept[column] = active ? 2 : soon;
    sync();
    int before[1], foreseen_before[1], unused_before[1], all_unused;
    int all_wanted = count_bits<1>(res.wanted, before), all_foreseen = count_bits<1>(res.others, foreseen_before);
    // If too few places are left by those that are active or soon will be, by active ones.
    for (int kept = 1; kept <= 2; kept++) {
        if ((int)THREAD < COLUMNS) {
            int owner = res.owner[THREAD];
            is_unused = owner < 0 || res.row[owner] >= THREADS || res.kept[THREAD] < kept;
        }
        unsigned unused = vote(is_unused);
        if (LANE == 0) res.unused[WARP] = unused;
        sync();
        all_unused = count_bits<1>(res.unused, unused_before);
        if (all_wanted <= all_unused) break;
        sync();
    }
    if (all_wanted > all_unused) return {0, -1, false};
    int count = all_wanted + all_foreseen < all_unused ? all_wanted + all_foreseen : all_unused;
    count = count < GROUP ? count : GROUP;
    int place = wants ? before[0] : all_wanted + foreseen_before[0];
    if ((wants || might) && place < count) res.coming[place] = i;
    bool goes = is_unused && unused_before[0] < count;
    if (goes) res.leaving[unused_before[0]] = res.owner[THREAD], res.places[unused_before[0]] = THREAD;
    bool acted = sync_or(goes && res.acts[THREAD] != 0);
    return {count, all_wanted > count ? all_wanted - count : 0, acted};
}

// Bring the columns of the coming neurons up to date, so many of them and of HOLDS at a time; those of idle rows are put into
// their places, and those of followed ones into `fetched`.
template <int AT_ONCE, int HOLDS> OUTLINED void fetch_columns(int count) {
    HERE;
    int row[4];
    read_columns<AT_ONCE, HOLDS>(
        net, OF_M, 0, count, [&](int q) { return (int)res.coming[q]; },
        [&](int first_row) {
            UNROLL for (int e = 0; e < 4; e++) row[e] = first_row + e < net.n ? res.row[first_row + e] : FAR;
        },
        [&](int q, const Four& weights) {
            real* idle = res.idle + res.places[q] * PITCH - THREADS;
            UNROLL for (int e = 0; e < 4; e++)
                if (row[e] >= 0) (row[e] < THREADS ? res.fetched + q * THREADS : idle)[row[e]] = weights.of[e];
        },
        [](int, int) {});
}

DEVICE Four read_fetched(Near& res, int thread, int q) {
    Four found;
    UNROLL for (int r = 0; r < 4; r++) found.of[r] = res.fetched[q * THREADS + TEAM_ROW_OF(thread, r)];
    return found;
}

// At first: those of the active neurons, a group at a time.
template <int G> DEVICE void fetch_groups(Near& res, Weights& m) {
    if constexpr (GROUP * G < COLUMNS) {
        int first = GROUP * G, count = res.columns - first < GROUP ? res.columns - first : GROUP;
        if (count <= 0) return;
        for EACH(q, count) res.coming[q] = res.owner[first + q], res.places[q] = first + q;
        sync();
        fetch_columns<FEW_LEFT ? 4 : 8, 4>(count);
        int thread = hidden(THREAD);
        sync();
        UNROLL for (int e = 0; e < 4; e++) {
            int q = 4 * MINE_OF(thread) + e;
            Four some = read_fetched(res, thread, q);  // past the last one are numbers, too
            if constexpr (G < GROUPS)
                UNROLL for (int r = 0; r < 4; r++) m.of[G][e][r] = some.of[r];
            else
                *in_tile(res, thread, first + q) = some;
        }
        sync();
        fetch_groups<G + 1>(res, m);
    }
}

// Fetch the columns of those that have become active at step k, and put back those that go. Gives whether there is room for
// all.
DEVICE bool fetch(Near& res, Weights& m, int now, int k) {
    Net& net = res.shared.net;
    Coming coming;
    int thread;
    do {
        coming = give_places();
        if (coming.left < 0) return false;
        if (IDLE && coming.acted) move_idle<false>(k);
        // As if it were another number each time: what follows from it is not to be kept in registers meanwhile.
        thread = hidden(THREAD);
        TeamRows rows = rows_of_team(res, thread);
        ROLLED for (int q = 0; q < coming.count; q++) {
            int leaving = res.leaving[q], place = res.places[q];
            if (leaving < 0) continue;
            Four some;
            if (move_column<true>(res, thread, m, place, some)) put_back(res, some.of, leaving, rows);
        }
        if (IDLE)
            put_back_idle(
                res, coming.count, [&](int q) { return res.leaving[q]; }, [&](int q) { return res.places[q]; });
        sync();
        fetch_columns<4, FEW_LEFT ? 4 : 8>(coming.count);
        thread = hidden(THREAD);
        sync();
        ROLLED for (int q = 0; q < coming.count; q++) {
            Four some = read_fetched(res, thread, q);
            move_column<false>(res, thread, m, res.places[q], some);
        }
        ROLLED for (int q = thread; q < coming.count; q += THREADS) {
            int neuron = res.coming[q], before = res.leaving[q], place = res.places[q];
            if (before >= 0) res.column[before] = -1;
            res.owner[place] = neuron, res.column[neuron] = place;
            res.y[now + place] = ROW(Y)[neuron], res.y[FLOORS + place] = 0;
            if (q == coming.count - 1) res.columns = res.columns > place ? res.columns : place + 1;
        }
        sync();
    } while (coming.left);
    return true;
}
