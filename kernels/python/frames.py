# SPDX-License-Identifier: Apache-2.0
"""The values of pandas' frames, for those who draw their own tables and charts."""
from glovebox_kernel import results

# A larger frame has no `data`, rather than a part of it that looks like the whole.
VALUES_MAX = 100_000


def _values(column):
    return [None if missing else results.plain(value)
            for value, missing in zip(column.tolist(), column.isna().tolist())]


def enrich(value, bundle):
    """Adds {column: [values]}; a Series is a frame with one column and has HTML like one."""
    if value.ndim == 1:
        value = value.to_frame(name="value" if value.name is None else value.name)
        bundle.setdefault("text/html", value._repr_html_())  # pylint: disable=protected-access
    if value.size > VALUES_MAX:
        return
    bundle["e2b/data"] = {str(name): _values(value.iloc[:, i]) for i, name in enumerate(value.columns)}
