"""Values that the tests of comparing hold theirs against, from SciPy and statsmodels.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0 pandas
    venv/bin/python crates/analysis/reference/compare.py > crates/analysis/reference/compare.txt

One value a line: its name, then numbers. Lines that begin with `cmp_a_` or `cmp_b_` are data.
"""

import itertools

import numpy as np
import scipy.stats
from statsmodels.stats.multitest import multipletests


def say(name, *values):
    print(name, *(repr(float(value)) for value in values))


# Student's sleep data (Cushny and Peebles 1905; Student, Biometrika 6, 1908), which R prints as
# `sleep`; exponentiated, so that logarithms are the published numbers.
sleep = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
rng = np.random.default_rng(7)
even = (rng.normal(4.6, 0.03, 12), rng.normal(4.65, 0.03, 12))
uneven = (rng.normal(4.6, 0.01, 8), rng.normal(4.62, 0.08, 15))
tied = (np.log(rng.integers(5, 12, 10)), np.log(rng.integers(6, 14, 10)))
for name, (a, b) in {"sleep": sleep, "even": even, "uneven": uneven, "tied": tied}.items():
    a, b = np.array(a), np.array(b)
    say(f"cmp_a_{name}", *a)
    say(f"cmp_b_{name}", *b)
    welch = scipy.stats.ttest_ind(b, a, equal_var=False)
    say(f"welch_{name}", b.mean() - a.mean(), welch.statistic, welch.df, welch.pvalue)
    if len(a) == len(b):
        paired = scipy.stats.ttest_rel(b, a)
        say(f"paired_{name}", (b - a).mean(), paired.statistic, paired.pvalue)
    say(f"munzel_{name}", scipy.stats.brunnermunzel(a, b).statistic)
    say(f"lehmann_{name}", np.median(np.subtract.outer(b, a)))

# Benjamini and Hochberg 1995, section 4.1: thrombolysis, 15 p-values.
published = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
]
drawn = np.round(rng.uniform(0, 1, 20) ** 3, 4)
for name, p in {"thrombolysis": published, "drawn": drawn}.items():
    say(f"p_{name}", *p)
    say(f"holm_{name}", *multipletests(p, 0.05, "holm")[1])
    found, adjusted, _, _ = multipletests(p, 0.05, "fdr_bh")
    say(f"bh_{name}", *adjusted)
    say(f"bh_found_{name}", *found)

# The share of all splits whose Brunner and Munzel statistic is at least as extreme, by SciPy's
# statistic on each split (7 against 7 without ties).

a, b = even[0][:7], even[1][:7]
say("cmp_a_splits", *a)
say("cmp_b_splits", *b)
pool = np.concatenate([a, b])
observed = abs(scipy.stats.brunnermunzel(a, b).statistic)
extreme = count = 0
with np.errstate(all="ignore"):
    for own in itertools.combinations(range(14), 7):
        rest = np.setdiff1d(np.arange(14), own)
        drawn = abs(scipy.stats.brunnermunzel(pool[list(own)], pool[rest]).statistic)
        extreme += drawn >= observed * (1 - 1e-9) or np.isnan(drawn)
        count += 1
say("splits_p", extreme / count)

# Geometric and harmonic means of ratios.
ratios = [1.31, 0.87, 2.4, 1.02, 0.99, 1.6]
say("means", scipy.stats.gmean(ratios), scipy.stats.hmean(ratios))
