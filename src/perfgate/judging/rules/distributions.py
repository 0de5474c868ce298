"""The distributions that the gate needs, of plain numbers.

scipy is imported when the first of them is asked for: that takes half as long as all of pytest and
perfgate, and a session that collects, skips or fails before anything is judged needs none of it.
"""


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def normal_share(z: float) -> float:
    """P(Z <= z) of the standard normal distribution; exact to the last digits in both tails."""
    from scipy.special import ndtr

    return float(ndtr(z))


def student_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t distribution; `dof` is finite."""
    from scipy.special import stdtrit

    return float(stdtrit(dof, probability))


def student_share(t: float, dof: float) -> float:
    """P(T <= t) of Student's t distribution; `dof` is finite."""
    from scipy.special import stdtr

    return float(stdtr(dof, t))


def beta_share(a: float, b: float, x: float) -> float:
    """P(X <= x) of the beta distribution: the regularised incomplete beta function."""
    from scipy.special import betainc

    return float(betainc(a, b, x))
