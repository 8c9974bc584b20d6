// W and M as they should be at the end of a hold: scale = 1, shift = 0, s = 1.
//
// To multiply rows of M touches all of it, and most columns are not read in the next hold, nor in the one after that. So
// where few neurons are run apart, s is remembered, and a column is multiplied when it is read, by all that it has missed
// and in that order, at the latest after REMEMBERED holds: it gets the same bits as if it had been multiplied at the end
// of each hold.

DEVICE real larger(real a, real b) { return a > b ? a : b; }

// The scale of a row that has only faded, with this largest weight: one that keeps its direction.
DEVICE real kept_scale(Net& net, real largest, real scale) {
    return !(scale > 0) || scale * largest >= net.smallest || !(largest > 0) ? scale : net.smallest / largest;
}

DEVICE real largest_of(const real* weights, int count, size_t apart) {
    real largest = 0;
    ROLLED for (int first = 0; first < count; first += 8) {  // eight are on their way at a time
        real some[8];
        UNROLL for (int j = 0; j < 8; j++) some[j] = first + j < count ? weights[(first + j) * apart] : (real)0;
        UNROLL for (int j = 0; j < 8; j++) largest = larger(largest, some[j]);
    }
    return largest;
}

DEVICE real kept_scale_of_M(Net& net, int i, real s, bool grown) {
    return grown ? s : kept_scale(net, largest_of(global(net.P) + i, net.n, net.stride), s);
}

DEVICE real kept_scale_of_W(Net& net, int i, real scale, real shift) {
    return shift != 0 ? scale : kept_scale(net, largest_of(global(net.W) + (size_t)i * net.m, net.m, 1), scale);
}

DEVICE void fold_W(Net& net, Shared& shared, const real* x) {
    real *scale = ROW(SCALE), *shift = ROW(SHIFT);
    int* rows = LIST(LISTED);
    int count = list_where(shared, net.n, rows, [=](int i) { return scale[i] != 1 || shift[i] != 0; });
    // A row that only leaks keeps its direction. Its largest weight is at least b / Σ x, which nearly always is enough.
    real *b = ROW(B), enough = 2 * net.smallest * net.sum_x;
    int faded = list_where(
        shared, count, LIST(ACTIVE), [=](int r) { return shift[rows[r]] == 0 && !(b[rows[r]] >= enough); });
    ROLLED for (int r = WARP; r < faded; r += WARPS) {
        int i = rows[LIST(ACTIVE)[r]];
        real largest = 0;
        for (int j = LANE; j < net.m; j += 32) largest = larger(largest, global(net.W)[(size_t)i * net.m + j]);
        for (int apart = 16; apart; apart /= 2) largest = larger(largest, shuffle_xor(largest, apart));
        if (LANE == 0) scale[i] = kept_scale(net, largest, scale[i]);
    }
    sync();
    ROLLED for (int first = WARP; first < count; first += 4 * WARPS)  // a warp has four rows at a time
        ROLLED for (int j = LANE; j < net.m; j += 128) {
            real weights[4][4];
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (first + r * WARPS < count && j + 32 * e < net.m)
                        weights[r][e] = global(net.W)[(size_t)rows[first + r * WARPS] * net.m + j + 32 * e];
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (first + r * WARPS < count && j + 32 * e < net.m) {
                        int i = rows[first + r * WARPS];
                        global(net.W)[(size_t)i * net.m + j + 32 * e] = scale[i] * weights[r][e] + shift[i] * x[j + 32 * e];
                    }
        }
    sync();
}

#if FEW
// Bring the listed columns of M up to date, `AT_ONCE` at a time, and take(which of them, places, weights) of each four
// rows, where places are those of the rows.
struct Places { int of[4]; };

template <int AT_ONCE, typename Find, typename Take>
DEVICE void refresh(Net& net, const int* list, int count, Find find, Take take) {
    int n_4 = ((int)net.n + 3) / 4, sharing = THREADS > n_4 ? THREADS / n_4 : 1, stride = net.stride, holds = net.holds;
    int* fresh = LIST(FRESH);  // up to which hold a column is so
    ROLLED for (int r = THREAD; r < sharing * n_4; r += THREADS) {
        int first_row = r % n_4 * 4;
        Places places;
        UNROLL for (int e = 0; e < 4; e++) places.of[e] = find(first_row + e);
        ROLLED for (int first = r / n_4; first < count; first += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            int at[AT_ONCE], since[AT_ONCE], oldest = holds;
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                int column = list[first + j * sharing < count ? first + j * sharing : first];
                at[j] = column * stride + first_row, since[j] = fresh[column];
                weights[j] = *(const Four*)(global(net.P) + at[j]);
                oldest = oldest < since[j] ? oldest : since[j];
            }
            ROLLED for (; oldest < holds; oldest += AT_ONCE) {
                Four s[AT_ONCE];
                UNROLL for (int h = 0; h < AT_ONCE; h++)
                    s[h] = *(const Four*)(global(net.remembered) + (oldest + h) % REMEMBERED * stride + first_row);
                UNROLL for (int h = 0; h < AT_ONCE; h++)
                    UNROLL for (int j = 0; j < AT_ONCE; j++)
                        if (oldest + h >= since[j] && oldest + h < holds)
                            UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] *= s[h].of[e];
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (first + j * sharing < count) {
                    if (since[j] < holds) *(Four*)(global(net.P) + at[j]) = weights[j];
                    take(first + j * sharing, places, weights[j]);
                }
        }
    }
}

template <int AT_ONCE> DEVICE void refresh(Net& net, const int* list, int count) {
    refresh<AT_ONCE>(net, list, count, [](int) { return 0; }, [](int, const Places&, const Four&) {});
}

DEVICE void mark_fresh(Net& net, const int* list, int count) {  // when all threads have refreshed them
    for EACH(q, count) LIST(FRESH)[list[q]] = net.holds;
}

// All columns that have missed something for at least so many holds.
DEVICE void refresh_all(Net& net, Shared& shared, int missed = 1) {
    int *list = LIST(LISTED), *fresh = LIST(FRESH), holds = net.holds;
    int count = list_where(shared, net.n, list, [=](int j) { return holds - fresh[j] >= missed; });
    refresh<8>(net, list, count);
    sync();
    mark_fresh(net, list, count);
    sync();
}

DEVICE void fold_M(Net& net, Shared& shared) {
    real *s = ROW(S), smallest = net.smallest;
    unsigned char* grown = TRUTH(GROWN);
    int *list = LIST(LISTED), n = net.n, stride = net.stride;
    bool changed = false, faded = false;
    for EACH(i, n) changed |= s[i] != 1, faded |= s[i] != 1 && !grown[i];
    if (!sync_or(changed)) return;
    if (sync_or(faded)) {  // a row that only leaks keeps its direction: two columns say so of nearly all
        int looked_at = n < 2 ? n : 2;
        for EACH(j, looked_at) list[j] = j;
        sync();
        refresh<2>(net, list, looked_at);
        sync();
        mark_fresh(net, list, looked_at);
        faded = false;
        for EACH(i, n)
            if (s[i] != 1 && !grown[i]) {
                bool visible = !(s[i] > 0);
                for (int j = 0; j < looked_at; j++) visible |= s[i] * global(net.P)[j * stride + i] >= smallest;
                faded |= !visible;
            }
        if (sync_or(faded)) {
            refresh_all(net, shared);
            for EACH(i, n) if (s[i] != 1) s[i] = kept_scale_of_M(net, i, s[i], grown[i]);
        }
    }
    real* now = global(net.remembered) + net.holds % REMEMBERED * stride;
    for EACH(i, (n + 3) / 4 * 4) now[i] = i < n ? s[i] : (real)1;
    sync();
    if (THREAD == 0) net.holds++;
    sync();
    refresh_all(net, shared, REMEMBERED);
}
#else
DEVICE void refresh_all(Net& net, Shared& shared) {}  // all are

DEVICE void fold_M(Net& net, Shared& shared) {
    real* s = ROW(S);
    unsigned char* grown = TRUTH(GROWN);
    for EACH(i, net.n) if (s[i] != 1) s[i] = kept_scale_of_M(net, i, s[i], grown[i]);
    sync();
    // Four rows at a time, if one of them has changed; threads share these, and the columns.
    int n = net.n, stride = net.stride, n_4 = (n + 3) / 4, *rows = LIST(LISTED);
    int fours = list_where(shared, n_4, rows, [=](int four) {
        bool changed = false;
        for (int i = 4 * four; i < 4 * four + 4 && i < n; i++) changed |= s[i] != 1;
        return changed;
    });
    const int AT_ONCE = 16;
    int sharing = fours && THREADS > fours ? THREADS / fours : 1;
    ROLLED for (int r = THREAD; r < sharing * fours; r += THREADS) {
        int first_row = 4 * rows[r % fours];
        Four factor;
        UNROLL for (int e = 0; e < 4; e++) factor.of[e] = first_row + e < n ? s[first_row + e] : (real)1;
        ROLLED for (int first = r / fours; first < n; first += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (first + j * sharing < n)
                    weights[j] = *(const Four*)(global(net.P) + (size_t)(first + j * sharing) * stride + first_row);
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (first + j * sharing < n) {
                    UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] *= factor.of[e];
                    *(Four*)(global(net.P) + (size_t)(first + j * sharing) * stride + first_row) = weights[j];
                }
        }
    }
    sync();
}
#endif
