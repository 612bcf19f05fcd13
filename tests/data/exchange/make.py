"""Makes the DataExchange files of tests/raw_scans.rs with h5py."""

import os

import h5py
import numpy as np


def make(name, libver, kind, chunked=False, radians=False, leave_out=(), flat=False):
    with h5py.File(os.path.join(os.path.dirname(__file__), name), "w", libver=libver) as file:
        angles, slices, pixels = 6, 3, 8
        k, i, j = np.meshgrid(np.arange(angles), np.arange(slices), np.arange(pixels), indexing="ij")
        # Numbers that floats and 16 bits hold exactly.
        counts = (100 + 10 * k + 100 * i + j).astype(kind)
        frames = np.array([799, 801]).astype(kind)
        options = dict(chunks=(1, slices, pixels), compression="gzip", shuffle=True) if chunked else {}
        group = file.create_group("exchange")
        if "data" not in leave_out:
            group.create_dataset("data", data=counts[:, 0] if flat else counts, **({} if flat else options))
        if "data_white" not in leave_out:
            group.create_dataset("data_white", data=frames[:, None, None] * np.ones((2, slices, pixels), kind), **options)
        if "data_dark" not in leave_out:
            group.create_dataset("data_dark", data=np.full((4, slices, pixels), 50, kind), **options)
        if "theta" not in leave_out:
            theta = 30.0 * np.arange(angles)
            stored = group.create_dataset("theta", data=np.deg2rad(theta) if radians else theta)
            stored.attrs["units"] = "radians" if radians else "degrees"


make("plain.h5", "earliest", np.uint16)
make("chunked.h5", ("v110", "v114"), np.float32, chunked=True, radians=True)
make("no-white.h5", "earliest", np.uint16, leave_out=("data_white", "theta"))
make("no-data.h5", ("v110", "v114"), np.float32, leave_out=("data",))
make("two-dimensions.h5", ("v110", "v114"), np.float32, flat=True)
