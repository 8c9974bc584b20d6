"""The paper's experiments, and some beyond it. Each module says

    TITLE             what it is about
    runs(scale)       what to run: runs by a key of the experiment's own
    measure(scale, results)    numbers by reading, measure and seed
    CLAIMS            what is claimed of them, and by which margins that is judged
    captions(scale)   of each figure
    draw(scale, results, numbers)    the figures

`reproduce.py` has the runs done by the same machinery as a sweep's, and hands them over.
"""
