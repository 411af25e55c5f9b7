"""Values for the tests of outliers, modes, forecast, twins, drift, warmup and variance.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0 pandas
    venv/bin/python crates/analysis/reference/stability.py > crates/analysis/reference/stability.txt

One value a line: its name, then numbers. Data are given beside what was made of them.
"""

import math

import numpy as np
import pandas as pd
import scipy.stats
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm


def say(name, *values):
    print(name, *(repr(float(value)) for value in values))


# Quantiles of the planning formulas, and the correction of a standard deviation for few values.
for n in (2, 3, 5, 10, 30):
    c4 = math.sqrt(2 / (n - 1)) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))
    say("c4", n, c4)
z = scipy.stats.norm.ppf(0.975) + scipy.stats.norm.ppf(0.8)
for spread, n in ((0.02, 8), (0.05, 18), (0.10, 30), (0.05, 2)):
    say("detectable", spread, n, math.expm1(spread * z * math.sqrt(2.1 / n)))
    say("repeats", spread, 0.05, math.ceil(2.1 * (z * spread / math.log1p(0.05)) ** 2))
for count, of in ((0, 1), (0, 10), (1, 20), (3, 40), (10, 10), (7, 200)):
    ci = scipy.stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    say("clopper", count, of, ci.low, ci.high)
for n in (3, 6, 10, 30):
    say("student", n, scipy.stats.t.ppf(0.975, n - 1))

# Half-widths of intervals of the median, by simulation, for the forecast of the stop rule: with
# standard normal values, the longer side of the interpolated order-statistic interval at each look
# of a profile, built at 96 %, the least so far, and the median of that over 200,000 sequences. The
# rigorous profile wants two looks in a row: it counts the wider one of two.
LOOKS = {
    "quick": [6, 8, 10],
    "standard": [8, 10, 12, 15, 20, 25, 30],
    "rigorous": [10, 12, 15, 20, 25, 30, 40, 50],
}


def longer_side(x):
    x = np.sort(x, axis=1)
    n = x.shape[1]
    cover = lambda k: 1 - 2 * scipy.stats.binom.cdf(k - 1, n, 0.5)
    k = max(k for k in range(1, n // 2 + 1) if cover(k) >= 0.96)
    low, high = x[:, k - 1], x[:, n - k]
    if 2 * (k + 1) <= n:
        share = (cover(k) - 0.96) / (cover(k) - cover(k + 1))
        weight = (n - k) * share / (k + (n - 2 * k) * share)
        low = low + weight * (x[:, k] - low)
        high = high + weight * (x[:, n - k - 1] - high)
    median = np.median(x, axis=1)
    return np.maximum(high - median, median - low)


rng = np.random.default_rng(7)
for name, looks in LOOKS.items():
    draws = rng.standard_normal((200_000, looks[-1]))
    least = np.full(len(draws), np.inf)
    before = np.full(len(draws), np.inf if name == "rigorous" else 0.0)
    medians = []
    for n in looks:
        own = longer_side(draws[:, :n])
        # At the last look one is enough: the cell is closed there anyway.
        needed = own if n == looks[-1] else np.maximum(own, before)
        least = np.minimum(least, needed)
        medians.append(round(np.median(least), 3))
        before = own if name == "rigorous" else before
    say(f"looks_{name}", *medians)

# Kruskal and Wallis with ties, and Spearman: Hollander and Wolfe, Nonparametric Statistical
# Methods, 1973: half-time of mucociliary clearance (p. 116), Hunter L values of tuna (p. 187).
clearance = [[2.9, 3.0, 2.5, 2.6, 3.2], [3.8, 2.7, 4.0, 2.4], [2.8, 3.4, 3.7, 2.2, 2.0]]
found = scipy.stats.kruskal(*clearance)
say("clearance", found.statistic, found.pvalue)
tied = [[1, 2, 2, 3], [2, 3, 4, 4], [5, 2, 6, 6, 6]]
found = scipy.stats.kruskal(*tied)
say("tied", found.statistic, found.pvalue)
hunter = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]
panel = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8]
say("tuna", scipy.stats.spearmanr(hunter, panel).statistic)
say("spearman_tied", scipy.stats.spearmanr([1, 2, 2, 3, 5, 5], [2, 1, 4, 4, 4, 9]).statistic)
say("tuna_slope", scipy.stats.theilslopes(hunter, panel).slope)

# Nested components, balanced: pastes of three casks from ten batches, each assayed twice (Davies and
# Goldsmith, Statistical Methods in Research and Production, 1972; `Pastes` of R's lme4, which gives
# the components 0.678, 8.434, and 1.657 without logarithms, as this data does).
pastes = [
    [[62.8, 62.6], [60.1, 62.3], [62.7, 63.1]],
    [[60.0, 61.4], [57.5, 56.9], [61.1, 58.9]],
    [[58.7, 57.5], [63.9, 63.1], [65.4, 63.7]],
    [[57.1, 56.4], [56.9, 58.6], [64.7, 64.5]],
    [[55.1, 55.1], [54.7, 54.2], [58.8, 57.5]],
    [[63.4, 64.9], [59.3, 58.1], [60.5, 60.0]],
    [[62.5, 62.6], [61.0, 58.7], [56.9, 57.7]],
    [[59.2, 59.4], [65.2, 66.0], [64.8, 64.1]],
    [[54.8, 54.8], [64.0, 64.0], [57.7, 56.8]],
    [[58.3, 59.3], [59.2, 59.2], [58.9, 56.6]],
]
rows = [
    (i, f"{i}.{j}", np.log(y))
    for i, casks in enumerate(pastes)
    for j, assays in enumerate(casks)
    for y in assays
]
frame = pd.DataFrame(rows, columns=["batch", "cask", "y"])
table = anova_lm(smf.ols("y ~ C(batch)", frame).fit())
between, within = table["mean_sq"]["C(batch)"], anova_lm(smf.ols("y ~ C(cask)", frame).fit())
cask_ss = within["sum_sq"]["C(cask)"] - table["sum_sq"]["C(batch)"]
cask, assay = cask_ss / 20, within["mean_sq"]["Residual"]
for batch in pastes:
    say("pastes", *np.ravel(batch))
say("pastes_components", assay, (cask - assay) / 2, (between - cask) / 6)
half = scipy.stats.t.ppf(0.975, 9) * math.sqrt(between / 60)
say("pastes_mean", frame["y"].mean(), frame["y"].mean() - half, frame["y"].mean() + half)

# Marginal standard error rule, five values a batch, by its definition: a decaying start.
rng = np.random.default_rng(3)
series = np.round(1000 + 600 * np.exp(-np.arange(200) / 12) + 20 * rng.standard_normal(200), 1)
batches = series.reshape(-1, 5).mean(axis=1)
error = [np.var(batches[d:]) / (len(batches) - d) for d in range(len(batches) // 2 + 1)]
say("mser_series", *series)
say("mser_cut", 5 * int(np.argmin(error)))
lagged = series[100:] - series[100:].mean()
rho = (lagged[1:] * lagged[:-1]).sum() / (lagged**2).sum()
say("lag_one", rho, 100 * (1 - rho) / (1 + rho))

# Two normals against one on logarithms, by the definition in src/modes.rs.
modes = [100, 101, 99.5, 100.4, 85, 85.6, 84.7, 100.9, 99.1, 100.2]
y = np.sort(np.log(modes))
n = len(y)


def gain(cut):
    parts = [y[:cut], y[cut:]]
    within = sum(((part - part.mean()) ** 2).sum() for part in parts)
    one = n * np.log(((y - y.mean()) ** 2).sum() / n) + 2 * np.log(n)
    mixing = -2 * sum(len(part) * np.log(len(part) / n) for part in parts)
    return within, one - (n * np.log(within / n) + mixing + 4 * np.log(n))


say("modes", *modes)
say("modes_gain", min(gain(cut) for cut in range(3, n - 2))[1])
u = 0.6745 * (np.log(modes) - np.median(y)) / scipy.stats.median_abs_deviation(y)
say("outlier_scores", *u)
