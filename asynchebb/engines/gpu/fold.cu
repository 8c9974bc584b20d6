// b = Wx at the start of a hold; and W and M as they should be at its end: scale = 1, shift = 0, s = 1.
//
// To multiply all rows of W and M touches all of their weights, of which most are not read in the next hold, nor in the
// one after that. So where few neurons are run apart, the scales of both are remembered. A column, of W that of a pixel,
// is multiplied when it is read, by all that it has missed and in that order; and every REMEMBERED holds, all of them are. It
// gets the same bits as if it had been multiplied at the end of each hold.

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
    return shift != 0 ? scale : kept_scale(net, largest_of(WEIGHTS_OF(i), net.m, PIXELS_APART), scale);
}

#if FEW
enum { OF_M, OF_W };  // which scales, or columns

DEVICE real* columns_of(Net& net, int which) { return global(which == OF_M ? net.P : net.V); }

// How many holds a column has missed. The last bits of how many there were when it was up to date are remembered, of the
// first pixels in shared memory, too.
template <bool ALL = false> DEVICE int missed_by(Net& net, int which, int column, int holds) {
    Shared& shared = *(Shared*)SHARED_MEMORY;
    bool is_at_hand = ALL || which == OF_M || column < AT_HAND_PIXELS;
    unsigned char since = shared.fresh[is_at_hand ? which * NEURONS + column : 0];
    read_global_if(!is_at_hand, &since, (unsigned char*)LIST(FRESH_W) + column);
    return (holds - since) & 255;
}
DEVICE void is_fresh(Net& net, int which, int column) {
    Shared& shared = *(Shared*)SHARED_MEMORY;
    unsigned char holds = (int)net.holds & 255;
    if (which == OF_M || column < AT_HAND_PIXELS) shared.fresh[which * NEURONS + column] = holds;
    else ((unsigned char*)LIST(FRESH_W))[column] = holds;
}

DEVICE real* remembered(Net& net, int which, int hold) {
    return global(net.remembered) + (which * REMEMBERED + (hold & (REMEMBERED - 1))) * net.stride;
}

// Go through the columns column_of(first), …, column_of(last − 1), bringing them up to date, several at a time. A thread has
// four rows; where there are enough threads, teams of them share the columns. The scales of so many HOLDS are on their way
// at a time. begin(first row); take(which, is it one?, weights) for each column, perhaps for one several times, in place of
// such as there are not; end(first row, team).
DEVICE int sharing_columns(Net& net) {  // there are four rows for sums
    int n_4 = ((int)net.n + 3) / 4;
    return 1 + (2 * n_4 <= THREADS) + (3 * n_4 <= THREADS) + (4 * n_4 <= THREADS);
}
DEVICE int team_of(int r, int n_4) { return (r >= n_4) + (r >= 2 * n_4) + (r >= 3 * n_4); }  // dividing takes far longer

template <int AT_ONCE, int HOLDS, bool ALL = false, typename Column, typename Begin, typename Take, typename End>
DEVICE void read_columns(
    Net& net, int which, int first, int last, Column column_of, Begin begin, Take take, End end) {
    int n_4 = ((int)net.n + 3) / 4, sharing = sharing_columns(net), stride = net.stride, holds = net.holds;
    ROLLED for (int r = THREAD; r < sharing * n_4; r += THREADS) {
        int team = team_of(r, n_4), first_row = 4 * (r - team * n_4);
        real* columns = columns_of(net, which) + first_row;
        begin(first_row);
        ROLLED for (int q = first + team; q < last; q += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            int at[AT_ONCE], since[AT_ONCE], oldest = holds;
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                int column = column_of(q + j * sharing < last ? q + j * sharing : q);
                at[j] = column * stride, since[j] = holds - missed_by<ALL>(net, which, column, holds);
                weights[j] = streamed((const Four*)(columns + at[j]));
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++) oldest = since[j] < oldest ? since[j] : oldest;
            ROLLED for (int hold = oldest; hold < holds; hold += HOLDS) {
                Four missed[HOLDS];
                UNROLL for (int h = 0; h < HOLDS; h++)
                    missed[h] = streamed((const Four*)(remembered(net, which, hold + h) + first_row));
                together();
                UNROLL for (int h = 0; h < HOLDS; h++)
                    UNROLL for (int j = 0; j < AT_ONCE; j++)
                        multiply_if_less(hold + h - since[j], holds - since[j], weights[j].of, missed[h].of);
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                bool is_one = q + j * sharing < last;
                if (since[j] < holds) *(Four*)(columns + at[j]) = weights[j];
                take(is_one ? q + j * sharing : q, is_one, weights[j]);
            }
        }
        end(first_row, team);
    }
    sync();
    for (int q = first + (int)THREAD; q < last; q += THREADS) is_fresh(net, which, column_of(q));
}

// Bring the listed columns up to date. They may be many: all scales that any of them may have missed are in registers.
OUTLINED void refresh(Net& net, int which, const int* list, int count) {
    const int AT_ONCE = sizeof(real) == 4 ? 8 : 4, HOLDS = 4;
    int n_4 = ((int)net.n + 3) / 4, sharing = sharing_columns(net), stride = net.stride, holds = net.holds;
    ROLLED for (int r = THREAD; r < sharing * n_4; r += THREADS) {
        int team = team_of(r, n_4), first_row = 4 * (r - team * n_4);
        real* columns = columns_of(net, which) + first_row;
        Four scales[REMEMBERED];
        UNROLL for (int h = 0; h < REMEMBERED; h++)
            scales[h] = streamed((const Four*)(remembered(net, which, holds - REMEMBERED + h) + first_row));
        ROLLED for (int q = team; q < count; q += AT_ONCE * sharing) {
            Four weights[AT_ONCE];
            int at[AT_ONCE], missed[AT_ONCE], most = 0;
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                int column = global(list)[q + j * sharing < count ? q + j * sharing : q];
                at[j] = column * stride, missed[j] = missed_by(net, which, column, holds);
                most = missed[j] > most ? missed[j] : most;
                weights[j] = streamed((const Four*)(columns + at[j]));
            }
            together();
            UNROLL for (int first = 0; first < REMEMBERED; first += HOLDS)
                if (REMEMBERED - first - HOLDS < most)
                    UNROLL for (int h = first; h < first + HOLDS; h++)
                        UNROLL for (int j = 0; j < AT_ONCE; j++)
                            multiply_if_less(REMEMBERED - 1 - h, missed[j], weights[j].of, scales[h].of);
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (q + j * sharing < count) *(Four*)(columns + at[j]) = weights[j];
        }
    }
    sync();
    for EACH(q, count) is_fresh(net, which, list[q]);
    sync();
}

// All columns that have missed something.
OUTLINED void refresh_all(Net& net, Shared& shared) {
    int *list = LIST(LISTED), holds = net.holds;
    ROLLED for (int which = OF_M; which <= OF_W; which++) {
        int count = list_where(
            shared, which == OF_M ? net.n : net.m, list, [&](int j) { return missed_by(net, which, j, holds) > 0; });
        if (count) refresh(net, which, list, count);
    }
}

// Are all of its pixels at hand?
#define WHERE_ALL_AT_HAND(net, function, ...) \
    (AT_HAND_PIXELS && (net).m <= AT_HAND_PIXELS ? function<AT_HAND_PIXELS != 0>(__VA_ARGS__) : function<false>(__VA_ARGS__))

// b = W @ x over the pixels that are not 0: what each team has of it.
template <bool ALL> OUTLINED void add_pixels(Net& net, const real* x, int pixels) {
    const int AT_ONCE = sizeof(real) == 4 ? 14 : 6, HOLDS = 4;
    Four sum;
    read_columns<AT_ONCE, HOLDS, ALL>(
        net, OF_W, 0, pixels, [&](int p) { return pixel<ALL>(net, p); }, [&](int) { sum = {0, 0, 0, 0}; },
        [&](int p, bool is_one, const Four& weights) {
            real x_j = shown_at<ALL>(net, x, p);
            if (is_one) UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights.of[e], x_j, sum.of[e]);
        },
        [&](int first_row, int team) { *(Four*)(TEAM_ROW(team) + first_row) = sum; });
}

DEVICE void feed_forward(Net& net, const real* x, int pixels) {
    int sharing = sharing_columns(net);
    WHERE_ALL_AT_HAND(net, add_pixels, net, x, pixels);
    for EACH(i, net.n) ROW(B)[i] = add_teams(net, i, sharing);
}

// Bring the pixels that were shown up to date, w_i = scale_i w_i + shift_i x. The others of W and all columns of M are left for
// later.
template <bool ALL> OUTLINED void fold_pixels(Net& net, const real* x, int pixels) {
    const int AT_ONCE = sizeof(real) == 4 ? 14 : 6;
    real *s = ROW(S), *scale = ROW(SCALE), *shift = ROW(SHIFT);
    int n = net.n, stride = net.stride, holds = net.holds, n_4 = (n + 3) / 4, sharing = sharing_columns(net);
    ROLLED for (int r = THREAD; r < sharing * n_4; r += THREADS) {
        int team = team_of(r, n_4), first_row = 4 * (r - team * n_4);
        Four scales, shifts, ss;
        bool changes = false;
        UNROLL for (int e = 0; e < 4; e++) {
            bool is_one = first_row + e < n;
            scales.of[e] = is_one ? scale[first_row + e] : (real)1, shifts.of[e] = is_one ? shift[first_row + e] : (real)0;
            ss.of[e] = is_one ? s[first_row + e] : (real)1;
            changes |= scales.of[e] != 1 || shifts.of[e] != 0;
        }
        *(Four*)(remembered(net, OF_M, holds) + first_row) = ss;
        *(Four*)(remembered(net, OF_W, holds) + first_row) = scales;
        if (!changes) continue;
        ROLLED for (int first = team; first < pixels; first += AT_ONCE * sharing) {
            Four weights[AT_ONCE], *at[AT_ONCE];
            real x_j[AT_ONCE];
            UNROLL for (int p = 0; p < AT_ONCE; p++) {
                int which = first + p * sharing < pixels ? first + p * sharing : first;
                at[p] = (Four*)(global(net.V) + (size_t)pixel<ALL>(net, which) * stride + first_row);
                weights[p] = streamed(at[p]), x_j[p] = shown_at<ALL>(net, x, which);
            }
            together();
            UNROLL for (int p = 0; p < AT_ONCE; p++) {
                UNROLL for (int e = 0; e < 4; e++)
                    weights[p].of[e] = scales.of[e] * weights[p].of[e] + shifts.of[e] * x_j[p];
                if (first + p * sharing < pixels) *at[p] = weights[p];
            }
        }
    }
}

OUTLINED void fold(Net& net, Shared& shared, const real* x, int pixels) {
    real *s = ROW(S), *scale = ROW(SCALE), *shift = ROW(SHIFT), *b = ROW(B), smallest = net.smallest;
    unsigned char* grown = TRUTH(GROWN);
    int *list = LIST(LISTED), n = net.n, stride = net.stride;
    // A row that only leaks keeps its direction. Of W its largest weight is at least b / Σ x, which nearly always is
    // enough; of M, two columns say so of nearly all.
    real enough = 2 * smallest * net.sum_x;
    bool changed = false, faded = false, faded_w = false;
    for EACH(i, n) {
        changed |= s[i] != 1 || scale[i] != 1 || shift[i] != 0;
        faded |= s[i] != 1 && !grown[i];
        faded_w |= scale[i] != 1 && shift[i] == 0 && !(b[i] >= enough);
    }
    if (!sync_or(changed)) return;
    if (sync_or(faded_w)) {
        refresh_all(net, shared);
        for EACH(i, n) if (scale[i] != 1) scale[i] = kept_scale_of_W(net, i, scale[i], shift[i]);
        sync();
    }
    if (sync_or(faded)) {
        int looked_at = n < 2 ? n : 2;
        for EACH(j, looked_at) list[j] = j;
        sync();
        refresh(net, OF_M, list, looked_at);
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
            sync();
        }
    }
    int holds = net.holds;
    WHERE_ALL_AT_HAND(net, fold_pixels, net, x, pixels);
    sync();
    if (THREAD == 0) net.holds++;
    sync();
    for EACH(p, pixels) is_fresh(net, OF_W, pixel<false>(net, p));
    sync();
    if ((holds + 1) % REMEMBERED == 0) refresh_all(net, shared);
}

// Take W over by pixels, or give it back by rows.
template <bool BACK> OUTLINED void turn_W(Net& net) {
    const int ROWS = 4, PIXELS = 4, ROWS_OF_WARP = 8 * ROWS;  // of a thread: few lines of memory for a warp, either way
    int n = net.n, m = net.m, stride = net.stride, tiles = (m + 4 * PIXELS - 1) / (4 * PIXELS);
    ROLLED for (int tile = WARP; tile < (n + ROWS_OF_WARP - 1) / ROWS_OF_WARP * tiles; tile += WARPS) {
        int i = tile / tiles * ROWS_OF_WARP + LANE / 4 * ROWS, j = (tile % tiles * 4 + LANE % 4) * PIXELS;
        real weights[ROWS][PIXELS], *rows = global(net.W) + (size_t)i * m + j, *columns = global(net.V) + (size_t)j * stride + i;
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int p = 0; p < PIXELS; p++)
                if (i + r < n && j + p < m) weights[r][p] = BACK ? columns[p * stride + r] : rows[r * m + p];
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int p = 0; p < PIXELS; p++)
                if (i + r < n && j + p < m) (BACK ? rows[r * m + p] : columns[p * stride + r]) = weights[r][p];
    }
}
#else
// b = W @ x over the pixels that are not 0; a warp for a row, sixteen at a time.
DEVICE void feed_forward(Net& net, const real* x, int pixels) {
    const int AT_ONCE = 16;
    real* b = ROW(B);
    int *listed = LIST(PIXELS), n = net.n, m = net.m;
    int pixel = LANE < pixels ? listed[LANE] : 0;  // the first of this lane: mostly the only one
    real value = LANE < pixels ? x[pixel] : (real)0;
    for (int first = WARP; first < n; first += AT_ONCE * WARPS) {
        real sum[AT_ONCE];
        UNROLL for (int r = 0; r < AT_ONCE; r++)
            sum[r] = first + r * WARPS < n ? global(net.W)[(size_t)(first + r * WARPS) * m + pixel] : (real)0;
        UNROLL for (int r = 0; r < AT_ONCE; r++) sum[r] = sum[r] * value;
        for (int p = LANE + 32; p < pixels; p += 32) {
            int j = listed[p];
            real weight[AT_ONCE], x_j = x[j];
            UNROLL for (int r = 0; r < AT_ONCE; r++)
                weight[r] = first + r * WARPS < n ? global(net.W)[(size_t)(first + r * WARPS) * m + j] : (real)0;
            UNROLL for (int r = 0; r < AT_ONCE; r++) sum[r] = plus(weight[r], x_j, sum[r]);
        }
        UNROLL for (int apart = 16; apart; apart /= 2)
            UNROLL for (int r = 0; r < AT_ONCE; r++) sum[r] += shuffle_xor(sum[r], apart);
        UNROLL for (int r = 0; r < AT_ONCE; r++)
            if (LANE == 0 && first + r * WARPS < n) b[first + r * WARPS] = sum[r];
    }
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

DEVICE void fold(Net& net, Shared& shared, const real* x, int pixels) {
    fold_W(net, shared, x);
    fold_M(net, shared);
}
#endif
