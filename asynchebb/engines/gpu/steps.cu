// All neurons, step by step: any equations, any activity, any n.

DEVICE real positive(real z) { return z > 0 || z != z ? z : (real)0; }

// Update a row that has to be rectified, or whose scale has to be brought back to 1. One thread does all of it.
OUTLINED void update_odd_row(Net& net, int i, const real* x, Terms& terms) {
    real *scale = ROW(SCALE), *shift = ROW(SHIFT), *s = ROW(S), *y = ROW(Y);
    unsigned char* grown = TRUTH(GROWN);
    if (odd_W(terms, scale[i])) {
        real *w = WEIGHTS_OF(i), total = 0, factor = scale[i];
        size_t apart = PIXELS_APART;
        bool rectified = !(terms.keep_w >= 0 && terms.gain >= 0);
        if (!rectified) factor = kept_scale_of_W(net, i, factor, shift[i]);
        ROLLED for (int first = 0; first < net.m; first += 8) {  // eight are on their way at a time
            real weights[8];
            UNROLL for (int j = 0; j < 8; j++) weights[j] = first + j < net.m ? w[(first + j) * apart] : (real)0;
            UNROLL for (int j = 0; j < 8; j++)
                if (first + j < net.m) {
                    real x_j = x[first + j];
                    weights[j] = factor * weights[j] + shift[i] * x_j;
                    if (rectified) weights[j] = positive(terms.keep_w * weights[j] + terms.gain * x_j);
                    w[(first + j) * apart] = weights[j], total = plus(weights[j], x_j, total);
                }
        }
        if (rectified) terms.keep_w = 1;
        scale[i] = 1, shift[i] = 0, ROW(B)[i] = total;
        ROW(GAIN_W)[i] = rectified ? 0 : terms.gain;
    }
    if (odd_M(net.floor, terms, s[i])) {
        bool rectified = net.floor != 0 || !(terms.keep_m >= 0 && terms.gain >= 0);
        real drop = terms.eta * net.floor;
        if (!rectified) s[i] *= terms.keep_m;
        real factor = kept_scale_of_M(net, i, s[i], grown[i]);
        ROLLED for (int first = 0; first < net.n; first += 8) {
            real *weight = global(net.P) + (size_t)first * net.stride + i, weights[8];
            UNROLL for (int j = 0; j < 8; j++) weights[j] = first + j < net.n ? weight[j * net.stride] : (real)0;
            UNROLL for (int j = 0; j < 8; j++)
                if (first + j < net.n) {
                    weights[j] *= factor;
                    if (rectified) weights[j] = positive(terms.keep_m * weights[j] + terms.gain * y[first + j] - drop);
                    weight[j * net.stride] = weights[j];
                }
        }
        s[i] = 1, grown[i] = 0, terms.keep_m = 1;
        if (rectified) ROW(GAIN_M)[i] = 0;
    }
}

// M̂ += gains yᵀ; the active neurons are listed. Threads share the weights of all rows that grow.
DEVICE void grow_rows(Net& net, Shared& shared, int count) {
    const int AT_ONCE = 8;
    real *y = ROW(Y), *gain_m = ROW(GAIN_M);
    int *active = LIST(ACTIVE), *rows = LIST(LISTED), stride = net.stride;
    int all = count * list_where(shared, net.n, rows, [=](int i) { return gain_m[i] != 0; });
    ROLLED for (int first = THREAD; first < all; first += AT_ONCE * THREADS) {
        real *at[AT_ONCE], weights[AT_ONCE], gains[AT_ONCE], rates[AT_ONCE];
        UNROLL for (int e = 0; e < AT_ONCE; e++) {
            int place = first + e * THREADS < all ? first + e * THREADS : first;
            int i = rows[place / count], j = active[place % count];
            at[e] = global(net.P) + (size_t)j * stride + i;
            weights[e] = *at[e], gains[e] = gain_m[i], rates[e] = y[j];
        }
        UNROLL for (int e = 0; e < AT_ONCE; e++)
            if (first + e * THREADS < all) *at[e] = plus(gains[e], rates[e], weights[e]);
    }
}

// Change the rows of the neurons with open gates; the active ones are listed. Their growth may be left to `lateral`.
// Gives whether a row was odd.
OUTLINED bool update(
    Net& net, Shared& shared, const real* x, int pixels, int count, long long t, bool grow_later = false) {
    real *y = ROW(Y), *a = ROW(A), *b = ROW(B), *s = ROW(S), *scale = ROW(SCALE), *shift = ROW(SHIFT);
    unsigned char *opened = TRUTH(OPENED), *grown = TRUTH(GROWN);
    bool odd = false;
    for EACH(i, net.n) {
        ROW(GAIN_M)[i] = 0;
        if (!opened[i]) continue;
        Terms terms = terms_of_update(net.rule, y[i], a[i]);
        a[i] = terms.a;
        if (net.trace_updates) add_to(&global(net.trace_updates)[t], synapses_changed(net, terms, y[i], pixels, count));
        real* gain_w = ROW(GAIN_W) + i;
        real* gain_m = ROW(GAIN_M) + i;
        *gain_w = *gain_m = terms.gain;
        if (odd_W(terms, scale[i]) || odd_M(net.floor, terms, s[i])) {
            odd = true;
            update_odd_row(net, i, x, terms);
        }
        scale[i] *= terms.keep_w;
        shift[i] = terms.keep_w * shift[i] + *gain_w;
        b[i] = terms.keep_w * b[i] + *gain_w * net.x_x;
        s[i] *= terms.keep_m;
        real gain = *gain_m / s[i];
        *gain_m = gain;
        grown[i] |= gain != 0;
    }
    if (!grow_later) grow_rows(net, shared, count);
    return sync_or(odd);
}

DEVICE real noise_at(unsigned long long counter) {
    unsigned long long z = counter * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z = (z ^ (z >> 31)) >> 40;
    return (real)(long long)z * (real)5.9604644775390625e-08;  // 2⁻²⁴
}

// Run all neurons from step k for some steps. `hold_start` is the number of steps before this hold.
OUTLINED void run_all(Net& net, Shared& shared, const real* x, int pixels, long long hold_start, int k, int steps) {
    real *u = ROW(U), *y = ROW(Y), *h = ROW(H), *b = ROW(B), *s = ROW(S), *inhibition = ROW(INHIBITION);
    real *before = ROW(BEFORE), *mean = ROW(MEAN), *gain_m = ROW(GAIN_M);
    long long *c = COUNT(C), *spikes = COUNT(SPIKES);
    unsigned char* opened = TRUTH(OPENED);
    int *active = LIST(ACTIVE), *firing = LIST(LISTED), half = net.hold / 2;
    int count = list_active(net, shared);
    bool known = false, growing = false;  // is M̂ @ y known already; has M̂ still to grow?
    int sharing = teams(net);
    if (steps >= SHORTEST) keep_columns(net, count);
    for (int kk = k; kk < k + steps; kk++) {
        long long t = hold_start + kk, clock = net.clock + t;
        // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        if (!known) lateral(net, active, count, y, inhibition, 0, growing);
        growing = false;
        sync();
        int opens = 0, spiking = 0, late = 0;
        for EACH(i, net.n) {
            real noise = net.noisy ? noise_at((unsigned long long)clock * net.n + i + 1) : 0;
            real new_u, new_y, new_h, fired, beta;
            long long new_c;
            if (!known) inhibition[i] = add_teams(net, i, sharing);
            step(net.dynamics, u[i], y[i], h[i], b[i] - s[i] * inhibition[i], noise, new_u, new_y, new_h, fired);
            before[i] = !net.events ? y[i] : fired > 0 ? new_y - net.decay * y[i] : (real)0;
            u[i] = new_u, y[i] = new_y, h[i] = new_h;
            if (net.window) {
                unsigned char* oldest = global(net.recent) + (clock % net.window) * net.n + i;
                spikes[i] += (fired > 0) - *oldest;
                *oldest = fired > 0;
            }
            spiking += fired > 0, late += fired > 1;
            if (net.trace_spikes) global(net.trace_spikes)[t * net.n + i] = fired > 0;
            gate(net.schedule, new_y, spikes[i], c[i], kk, net.hold, beta, new_c);
            opened[i] = beta != 0;
            opens += beta != 0;
            c[i] = new_c;
            if (net.trace_y) global(net.trace_y)[t * net.n + i] = new_y;
            if (net.trace_means) ROW(ALL_RATES)[i] += new_y;
            if (net.trace_burst) global(net.trace_burst)[t * net.n + i] = beta != 0;
            if (net.trace_active && new_y > 0) add_to(&global(net.trace_active)[t], 1);
            if (net.spiking && kk >= half) mean[i] += new_y / (real)(net.hold - half);
        }
        if (spiking) add_to(&net.fired[0], spiking);
        if (late) add_to(&net.fired[1], late);
        known = false;
        if (net.events) {  // y has decayed for all, and so has the inhibition: only columns of those that fired are read
            int firings = list_where(shared, net.n, firing, [=](int i) { return before[i] != 0; });
            lateral(net, firing, firings, before, inhibition, net.decay);
            sync();
            for EACH(i, net.n) inhibition[i] = add_teams(net, i, sharing);
            known = true;
        }
        if (sync_or(opens)) {
            count = list_active(net, shared);
            growing = sharing > 0 && !net.events;
            bool odd = update(net, shared, x, pixels, count, t, growing);
            if (odd) forget_columns(net);
            if (known && !odd) {  // M̂ has grown by gain_i y_j
                real squares = 0;  // each warp adds them up
                for (int q = LANE; q < count; q += 32) squares = plus(y[active[q]], y[active[q]], squares);
                squares = sum_of_warp(squares);
                for EACH(i, net.n)
                    if (opened[i]) inhibition[i] = plus(gain_m[i], squares, inhibition[i]);
            }
            known = known && !odd;
        }
        if (!known) count = list_active(net, shared);
    }
    if (growing) lateral(net, active, count, y, inhibition, 0, true);
    sync();
}
