"""Intervals of printed means and of their ratios, that the tests of module `moments` hold theirs
against, from SciPy.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1
    venv/bin/python crates/analysis/reference/moments.py > crates/analysis/reference/moments.txt

`mean_interval`: mean, deviation, n, level, low, high. `mean_ratio`: mean, deviation, n of the base
and of the other, level, low, high. The ends of a ratio are found as the values that a test just
does not reject, by bisection, and not by solving the equation that the crate solves.
"""

import math

import scipy.optimize
import scipy.stats


def say(name, *values):
    print(name, *(repr(float(value)) for value in values))


# Write of reiser4 and record rewrite of xfs at records of 1 MiB (IOzone, 2009), and others.
for mean, deviation, n, level in [
    (100476.50, 167.31, 10, 0.95),
    (3258345.00, 372536.39, 10, 0.95),
    (100476.50, 167.31, 10, 1 - 0.05 / 104),
    (5.0, 1.25, 2, 0.9),
]:
    ends = scipy.stats.t.interval(level, n - 1, mean, deviation / math.sqrt(n))
    say("mean_interval", mean, deviation, n, level, *ends)


def ratio_ends(m1, s1, n1, m2, s2, n2, level):
    v1, v2 = s1 * s1 / n1, s2 * s2 / n2
    found = m2 / m1
    other = found * found * v1
    freedom = (v2 + other) ** 2 / (v2 * v2 / (n2 - 1) + other * other / (n1 - 1))
    critical = scipy.stats.t.ppf(0.5 + level / 2, freedom)
    beyond = lambda theta: abs(m2 - theta * m1) / math.sqrt(v2 + theta * theta * v1) - critical
    low = scipy.optimize.brentq(beyond, found * 0.2, found, xtol=1e-14)
    high = scipy.optimize.brentq(beyond, found, found * 5, xtol=1e-14)
    return low, high


for case in [
    (62220.00, 98.06, 10, 78827.60, 142.0, 10, 0.95),
    (3258345.00, 372536.39, 10, 2711385.40, 280000.0, 10, 0.95),
    (12.0, 0.5, 3, 250.0, 40.0, 8, 1 - 0.05 / 104),
]:
    say("mean_ratio", *case, *ratio_ends(*case))
