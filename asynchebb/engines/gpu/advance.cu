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

// A stimulus is about to be shown.
OUTLINED void begin_hold(Net& net, Shared& shared, int stimulus) {
    const real* x = global(net.X) + (size_t)stimulus * net.m;
    if (net.from_rest) rest(net);
    int pixels = number_where(
        shared, net.m, [=](int j) { return x[j] != 0; }, [&](int j, int place) { is_shown(net, place, j, x[j]); });
    sync();
    if (WARP == 0) {
        real squares = 0, sum = 0;
        for (int p = LANE; p < pixels; p += 32) {
            real x_j = shown_at<false>(net, x, p);
            squares = plus(x_j, x_j, squares), sum += x_j > 0 ? x_j : (real)0;
        }
        squares = sum_of_warp(squares), sum = sum_of_warp(sum);
        if (LANE == 0) net.x_x = squares, net.sum_x = sum;
    }
    for EACH(i, net.n) ROW(SCALE)[i] = ROW(S)[i] = 1, ROW(SHIFT)[i] = ROW(MEAN)[i] = ROW(ALL_RATES)[i] = 0,
        TRUTH(GROWN)[i] = 0;
    forget_columns(net);
    feed_forward(net, x, pixels);
    if (THREAD == 0) shared.pixels = pixels;
    sync();
    SPENT(ON_WX)
}

// It was shown.
OUTLINED void end_hold(Net& net, Shared& shared, int stimulus) {
    fold(net, shared, global(net.X) + (size_t)stimulus * net.m, shared.pixels);
    SPENT(ON_FOLDING)
    size_t first = (size_t)stimulus * net.n;
    if (net.trace_means)
        for EACH(i, net.n) global(net.trace_means)[first + i] = ROW(ALL_RATES)[i] / (real)net.hold;
    if (net.settled)
        for EACH(i, net.n) global(net.settled)[first + i] = net.spiking ? ROW(MEAN)[i] : ROW(Y)[i];
    sync();
}

// Show it. What lives meanwhile takes registers from what runs it: so little does.
DEVICE void show(Net& net, Memory& memory, int stimulus) {
    Shared& shared = *(Shared*)&memory;  // it is the first thing in there
    begin_hold(net, shared, stimulus);
    int k = 0, spell = net.hold;  // for how many steps all neurons are run
#if FEW
    if (THREAD == 0)
        memory.shown = {global(net.X) + (size_t)stimulus * net.m, (long long)stimulus * net.hold, SHORTEST, true};
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
        run_all(net, shared, global(net.X) + (size_t)stimulus * net.m, shared.pixels, (long long)stimulus * net.hold, k, steps);
        SPENT(ON_ALL)
        k += steps;
    }
    end_hold(net, shared, stimulus);
}

KERNEL(advance, Net* nets, int count) {
    begin(nets[BLOCK].meeting);
    Memory& memory = *(Memory*)(MEMORY(nets));
    Net& net = ((Shared&)memory).net;
#if FEW
    __shared__ int network, next;
    if (THREAD == 0) network = BLOCK;
    sync();
    while (network >= 0) {
        begin_turn(nets, network, memory);
        SPENT(ON_BEGINNING)
        do {
            for (int steps = 0; steps < STEPS_OF_A_TURN && left_of(net); steps += net.hold) {
                show(net, memory, net.shown);
                if (THREAD == 0) net.shown++;
                sync();
            }
            if (THREAD == 0) next = next_in_line(nets, count, left_of(net));
            sync();
        } while (next < 0 && left_of(net));  // no one waits who has as much left to do
        end_turn(nets, network, memory);
        if (THREAD == 0) {
            if (left_of(net)) stand_in_line(nets, count, network);
            network = next;
        }
        sync();
    }
#else
    if (THREAD == 0) net = nets[BLOCK];
    sync();
    for (int stimulus = 0; stimulus < net.stimuli; stimulus++) show(net, memory, stimulus);
#endif
}
