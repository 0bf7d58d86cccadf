"""Points: the instants at which groups change, and what is summed up over them."""

from __future__ import annotations

import numpy as np

from headgate.kernels.aggregate.points import Points


def test_groups_without_points_have_no_part_in_running_sums() -> None:
    events, instants = np.array([1, 1, 2]), np.array([5, 9, 7])
    points, which = Points.of(events, instants, groups=4)
    assert which.tolist() == [0, 1, 2]
    running = points.running(np.array([1, 2, 4]), start=np.array([100, 10, 20, 100]))
    assert running.tolist() == [11, 13, 24]
