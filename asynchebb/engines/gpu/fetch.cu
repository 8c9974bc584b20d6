// Columns come when they are needed, or soon will be.

// Which columns come, and which go for them: those of neurons that have become active come, and if it can be done at the same
// time, of those that soon will be; they take the places of neurons that are silent, and will be for a while.
struct Coming {
    int count, left;  // how many come, and how many more are needed; these are −1 if there is no room
};

// Is a followed neuron active (2), or will it be soon (1)?
DEVICE int need_of(Near& res, int i, int row) {
    Net& net = res.shared.net;
    if (ROW(Y)[i] != 0) return 2;
    return might_wake(res.dynamics, ROW(U)[i], FORESEEN * (ROW(B)[i] - ROW(S)[i] * res.inhibition[row]));
}

OUTLINED Coming give_places() {
    HERE;
    int row = ROW_OF((int)THREAD), i = res.id[row], place = THREAD, owner = place < res.most ? res.owner[place] : -1;
    int need = i < 0 || res.column[i] >= 0 ? 0 : need_of(res, i, row);
    int kept = owner < 0 || res.row[owner] >= THREADS ? 0 : need_of(res, owner, res.row[owner]);
    unsigned wanted = vote(need == 2), foreseen = vote(need == 1);
    unsigned unused = vote(place < res.most && kept == 0), silent = vote(place < res.most && kept < 2);
    if (LANE == 0) {
        res.wanted[WARP] = wanted, res.others[WARP] = foreseen;
        res.unused[WARP] = unused, res.silent[WARP] = silent;
    }
    sync();
    int before[1], foreseen_before[1], unused_before[1];
    int all_wanted = count_bits<1>(res.wanted, before), all_foreseen = count_bits<1>(res.others, foreseen_before);
    int all_unused = count_bits<1>(res.unused, unused_before);
    bool is_unused = unused >> LANE & 1;
    if (all_wanted > all_unused) {  // those that soon will be active have to go, too
        all_unused = count_bits<1>(res.silent, unused_before), is_unused = silent >> LANE & 1;
        if (all_wanted > all_unused) return {0, -1};
    }
    int count = all_wanted + all_foreseen < all_unused ? all_wanted + all_foreseen : all_unused;
    count = count < GROUP ? count : GROUP;
    int q = need == 2 ? before[0] : all_wanted + foreseen_before[0];
    if (need && q < count) res.coming[q] = i;
    bool goes = is_unused && unused_before[0] < count;
    if (goes) res.leaving[unused_before[0]] = owner, res.places[unused_before[0]] = place;
    unsigned going = vote(goes);
    if (LANE == 0) res.going[WARP] = going;
    sync();
    return {count, all_wanted > count ? all_wanted - count : 0};
}

// Bring the columns of the coming neurons up to date, so many of them and of HOLDS at a time; those of idle rows are put into
// their places, and those of followed ones into `fetched`.
template <int AT_ONCE, int HOLDS> OUTLINED void fetch_columns(int count) {
    HERE;
    int row[4], pitch = res.pitch;
    bool is_followed[4];
    real* idle = idle_weights(res) - THREADS;
    read_columns<AT_ONCE, HOLDS>(
        net, OF_M, 0, count, [&](int q) { return (int)res.coming[q]; },
        [&](int first_row) {  // without branches: what far neurons have is put where no one reads it
            UNROLL for (int e = 0; e < 4; e++) {
                row[e] = first_row + e < net.n ? res.row[first_row + e] : FAR;
                row[e] = row[e] < 0 ? THREADS + pitch - 1 : row[e], is_followed[e] = row[e] < THREADS;
            }
        },
        [&](int q, bool, const Four& weights) {  // it may be the same one again
            real *followed = res.fetched + q * THREADS, *others = idle + res.places[q] * pitch;
            UNROLL for (int e = 0; e < 4; e++) (is_followed[e] ? followed : others)[row[e]] = weights.of[e];
        },
        [](int, int) {});
}

// At first: those of the active neurons, a group at a time.
template <int G> DEVICE void fetch_groups(Near& res, Weights& m) {
    if constexpr (GROUP * G < MOST) {
        int first = GROUP * G, count = res.columns - first < GROUP ? res.columns - first : GROUP;
        if (count <= 0) return;
        for EACH(q, count) res.coming[q] = res.owner[first + q], res.places[q] = first + q;
        sync();
        fetch_columns<FEW_LEFT ? 4 : 8, 4>(count);
        int thread = hidden(THREAD);
        sync();
        UNROLL for (int e = 0; e < 4; e++) {
            real* weights = weights_of(res, thread, m, G, e);  // past the last one are numbers, too
            UNROLL for (int r = 0; r < 4; r++) weights[r] = on_the_way(res, thread, 4 * MINE_OF(thread) + e, r);
        }
        sync();
        fetch_groups<G + 1>(res, m);
    }
}

// What idle neurons have felt of columns that go since they were moved.
DEVICE void feel_leaving(int count) {
    HERE;
    ROLLED for EACH(j, res.rows - THREADS) {
        const real* weights = idle_weights(res) + j;
        real felt = res.felt[j];
        ROLLED for (int q = 0; q < count; q++) felt = plus(weights[res.places[q] * res.pitch], res.acts[res.places[q]], felt);
        res.felt[j] = felt;
    }
}

// Fetch the columns of those that have become active, and put back those that go. Gives whether there is room for all.
DEVICE bool fetch(Near& res, Weights& m, int now) {
    Net& net = res.shared.net;
    Coming coming;
    int thread;
    do {
        coming = give_places();
        if (coming.left < 0) return false;
        // As if it were another number each time: what follows from it is not to be kept in registers meanwhile.
        thread = hidden(THREAD);
        TeamRows rows = rows_of_team(res, thread);
        if (vote_any(rows.any))
            ROLLED for (int q = 0; q < coming.count; q++) {
                Four some;
                int leaving = res.leaving[q];
                if (leaving >= 0 && take_column(res, thread, m, res.places[q], some)) put_back(res, some.of, leaving, rows);
            }
        if (IDLE) {
            feel_leaving(coming.count);
            put_back_idle(
                res, coming.count, [&](int q) { return res.leaving[q]; }, [&](int q) { return res.places[q]; });
        }
        sync();
        if (FEW_LEFT || coming.count > 4) fetch_columns<FEW_LEFT ? 4 : 8, 4>(coming.count);
        else fetch_columns<4, 8>(coming.count);
        thread = hidden(THREAD);
        sync();
        each_going(res, thread, [&](int g, unsigned which, int q) {
            UNROLL for (int e = 0; e < 4; e++) {
                real *weights = weights_of(res, thread, m, g, e), some[4];
                UNROLL for (int r = 0; r < 4; r++) some[r] = on_the_way(res, thread, q % GROUP, r);
                UNROLL for (int r = 0; r < 4; r++)
                    if (which >> e & 1) weights[r] = some[r];
                q += which >> e & 1;
            }
        });
        ROLLED for (int q = thread; q < coming.count; q += THREADS) {
            int neuron = res.coming[q], before = res.leaving[q], place = res.places[q];
            if (before >= 0) res.column[before] = -1;
            res.owner[place] = neuron, res.column[neuron] = place;
            res.y[now + place] = ROW(Y)[neuron], res.y[FLOORS + place] = res.acts[place] = 0;
            if (q == coming.count - 1) res.columns = res.columns > place ? res.columns : place + 1;
        }
        sync();
    } while (coming.left);
    return true;
}
