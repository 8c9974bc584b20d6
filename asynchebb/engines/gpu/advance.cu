// Show all its stimuli to a network.

DEVICE void rest(Net& net) {  // u, y = step(0, 0), or 0
    for EACH(i, net.n) {
        real u = 0, y = 0, unused;
        if (!net.has_memory) step(net.dynamics, 0, 0, 0, 0, 0, u, y, unused, unused);
        ROW(U)[i] = u, ROW(Y)[i] = y, COUNT(SPIKES)[i] = 0;
        for (int place = 0; place < net.window; place++) global(net.recent)[place * net.n + i] = 0;
    }
}

#if !FEW
typedef Shared Memory;
#endif
SIZE(shared_bytes, sizeof(Memory));

KERNEL(advance, Net* nets) {
    begin(nets[BLOCK].meeting);
    Memory& memory = *(Memory*)(MEMORY(nets));
    Shared& shared = *(Shared*)&memory;  // it is the first thing in there
    Net& net = shared.net;
    if (THREAD == 0) net = nets[BLOCK];
    sync();
#if FEW
    keep_constants(memory);
    for EACH(j, net.n) shared.fresh[j] = 0;
    for EACH(j, net.m) LIST(FRESH_W)[j] = 0;
    turn_W<false>(net);
    sync();
#endif
    SPENT(ON_BEGINNING)
    for (int stimulus = 0; stimulus < net.stimuli; stimulus++) {
        const real* x = global(net.X) + (size_t)stimulus * net.m;
        long long hold_start = (long long)stimulus * net.hold;
        if (net.from_rest) rest(net);
        int pixels = list_where(shared, net.m, LIST(PIXELS), [=](int j) { return x[j] != 0; });
        if (WARP == 0) {
            real squares = 0, sum = 0;
            for (int j = LANE; j < net.m; j += 32) squares = plus(x[j], x[j], squares), sum += x[j] > 0 ? x[j] : (real)0;
            squares = sum_of_warp(squares), sum = sum_of_warp(sum);
            if (LANE == 0) net.x_x = squares, net.sum_x = sum;
        }
        for EACH(i, net.n) ROW(SCALE)[i] = ROW(S)[i] = 1, ROW(SHIFT)[i] = ROW(MEAN)[i] = ROW(ALL_RATES)[i] = 0,
            TRUTH(GROWN)[i] = 0;
        forget_columns(net);
        feed_forward(net, x, pixels);
        sync();
        SPENT(ON_WX)
        int k = 0, spell = net.hold;  // for how many steps all neurons are run
#if FEW
        if (THREAD == 0) memory.shown = {x, hold_start, pixels, SHORTEST, 8, true};
        sync();
#endif
        while (k < net.hold) {
#if FEW
            bool again = true;
            while (again && net.hold - k >= WORTHWHILE) k = run_few(k), again = memory.shown.again;
            if (k == net.hold) break;
            spell = memory.shown.spell;
#endif
            int steps = net.hold - k < spell ? (int)net.hold - k : spell;
            refresh_all(net, shared);
            run_all(net, shared, x, pixels, hold_start, k, steps);
            SPENT(ON_ALL)
            k += steps;
        }
        fold(net, shared, x, pixels);
        SPENT(ON_FOLDING)
        if (net.trace_means)
            for EACH(i, net.n)
                global(net.trace_means)[(size_t)stimulus * net.n + i] = ROW(ALL_RATES)[i] / (real)net.hold;
        if (net.settled)
            for EACH(i, net.n) global(net.settled)[(size_t)stimulus * net.n + i] = net.spiking ? ROW(MEAN)[i] : ROW(Y)[i];
        sync();
    }
#if FEW
    refresh_all(net, shared);
    if (net.holds) turn_W<true>(net);
#endif
}
