// Where there are more networks than blocks, these take turns: a block shows some stimuli to a network and goes on with the
// one that has waited longest, unless that has less left to do. So no network is left to the end, and the card is busy until
// all are nearly done. What a network is handed back with is what a run needs that goes on: that makes no difference to its bits.
#define STEPS_OF_A_TURN 2500

// Those who wait stand in a line, in which each place has a number: a network's record says who has the place with its own
// number, or that and a multiple of how many networks there are. At first, those that blocks do not begin with wait, in order.
struct Waiting {  // in the memory that all blocks share, 0 at first
    int who, left, joined;  // of the first network: so many have left the line, and joined it
};

DEVICE volatile Waiting& waiting(Net* nets, int network) { return *(volatile Waiting*)global(nets[network].meeting); }

DEVICE long long left_of(const volatile Net& net) { return (net.stimuli - net.shown) * net.hold; }  // steps

// Take who has waited longest; or −1 if there is no one, or who waits has less left to do than `left`. Only one thread of a
// block does this.
DEVICE int next_in_line(Net* nets, int count, long long left) {
    volatile Waiting& line = waiting(nets, 0);
    while (true) {
        int gone = line.left, place = BLOCKS_HERE + gone, who = place;
        if (place >= count + line.joined) return -1;
        if (place >= count) {
            int before = place / count * count;  // who has a place of that round is a number larger than that
            who = waiting(nets, place % count).who - before - 1;
            if (who < 0 || who >= count) continue;  // it is just about to join; or all this was long ago
        }
        fence();
        if (left_of(nets[who]) < left) return -1;
        if (replace(&line.left, gone, gone + 1)) return who;  // else someone else was first
    }
}

DEVICE void stand_in_line(Net* nets, int count, int network) {
    fence();
    int place = count + add_one(&waiting(nets, 0).joined);
    waiting(nets, place % count).who = place / count * count + network + 1;
}

// What is kept of a network between its turns, besides its state: how fresh its columns are. Take it over, or give it BACK.
template <bool BACK> DEVICE void turn_fresh(Net& net, Shared& shared) {
    auto turn = [](unsigned char& there, unsigned char& here) { (BACK ? there : here) = BACK ? here : there; };
    for EACH(j, net.n) turn((global(net.truths) + FRESH * net.stride)[j], shared.fresh[j]);
    for (int j = (int)THREAD; j < net.m && j < AT_HAND_PIXELS; j += THREADS)
        turn(((unsigned char*)LIST(FRESH_W))[j], shared.fresh[NEURONS + j]);
}

DEVICE void begin_turn(Net* nets, int network, Memory& memory) {
    Shared& shared = memory.shared;
    Net& net = shared.net;
    if (THREAD == 0) net = nets[network];
    sync();
    keep_constants(memory);
    turn_numbers<false>(net);
    if (net.shown == 0) {
        for EACH(j, net.n) is_fresh(net, OF_M, j);  // holds is 0
        for EACH(j, net.m) is_fresh(net, OF_W, j);
        turn_W<false>(net);
    } else
        turn_fresh<false>(net, shared);
    sync();
}

DEVICE void end_turn(Net* nets, int network, Memory& memory) {
    Shared& shared = memory.shared;
    Net& net = shared.net;
    if (left_of(net))
        turn_fresh<true>(net, shared);
    else {
        refresh_all(net, shared);
        if (net.holds) turn_W<true>(net);
    }
    turn_numbers<true>(net);
    if (THREAD == 0) nets[network].holds = net.holds, nets[network].shown = net.shown;
    sync();
}
