"""Values that the tests of trends and changes hold theirs against, from SciPy.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    venv/bin/python crates/analysis/reference/trends.py > crates/analysis/reference/trends.txt

One value a line: its name, then numbers.
"""

import numpy as np
import scipy.optimize
import scipy.stats
import statsmodels.api as sm


def say(name, *values):
    print(name, *(repr(float(value)) for value in values))


def mann_kendall(values):
    """The normal approximation with ties and the correction for continuity, by its definition."""
    values = np.asarray(values, float)
    n = len(values)
    s = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)].sum()
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    z = np.sign(s) * max(abs(s) - 1, 0) / variance**0.5
    return 2 * scipy.stats.norm.sf(abs(z))


def divergence(points, tau):
    """Q of a split, by its definition."""
    x, y = points[:tau], points[tau:]
    mean = lambda own: np.abs(own[:, None] - own)[np.triu_indices(len(own), 1)].mean()
    across = 2 * np.abs(x[:, None] - y).mean()
    return len(x) * len(y) / len(points) * (across - mean(x) - mean(y))


# Yearly flow of the Nile at Aswan, 1871 to 1970, in 1e8 cubic meters: Cobb, "The problem of the
# Nile: Conditional solution to a changepoint problem", Biometrika 65, 1978.
nile = sm.datasets.nile.load_pandas().data["volume"].to_numpy()
say("nile", *nile)
say("nile_tau", scipy.stats.kendalltau(range(len(nile)), nile).statistic)
say("nile_p", mann_kendall(nile))
logs = np.log(nile)
places = range(4, len(nile) - 3)
q = [divergence(logs, tau) for tau in places]
say("nile_split", places[int(np.argmax(q))], max(q))
say("nile_t", scipy.stats.ttest_ind(logs[:28], logs[28:]).pvalue)
say("nile_levels", logs[:28].mean(), logs[28:].mean())

# Without ties up to 10 values: all orders are counted.
for name, values in {"nine": [3, 1, 4, 6, 5, 9, 2, 8, 7], "ten": [1, 2, 3, 5, 4, 6, 7, 8, 10, 9]}.items():
    result = scipy.stats.kendalltau(range(len(values)), values, method="exact")
    say(f"kendall_{name}", *values)
    say(f"kendall_{name}_is", result.statistic, result.pvalue)

tied = [1, 3, 3, 2, 5, 4, 4, 4, 7, 6, 8, 8]
say("kendall_tied", *tied)
say("kendall_tied_is", scipy.stats.kendalltau(range(len(tied)), tied).statistic, mann_kendall(tied))

# The closest sequences that never fall and never rise.
values, weights = [3.0, 1.0, 2.0, 6.0, 5.0, 5.5, 4.0, 7.0], [1, 2, 1, 3, 8, 1, 2, 1]
say("isotonic", *values)
say("isotonic_weights", *weights)
for name, increasing in {"rising": True, "falling": False}.items():
    fit = scipy.optimize.isotonic_regression(values, weights=weights, increasing=increasing)
    say(f"isotonic_{name}", *fit.x)
