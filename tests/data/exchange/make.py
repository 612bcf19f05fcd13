"""Makes the HDF5 files of tests/raw_scans.rs with h5py, and a stack of ImageJ."""

import os
import struct

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


def path(name):
    return os.path.join(os.path.dirname(__file__), name)


# The numbers of plain.h5, reached through links and a virtual data set.
with h5py.File(path("plain.h5")) as plain:
    parts = {name: plain["exchange"][name][()] for name in ("data", "data_white", "data_dark", "theta")}
for name, libver in (("soft.h5", "earliest"), ("soft-group.h5", "latest")):
    with h5py.File(path(name), "w", libver=libver) as file:
        raw = file.create_group("entry/raw")
        for part, numbers in parts.items():
            raw[part] = numbers
        raw["theta"].attrs["units"] = "deg"
        if name == "soft-group.h5":
            file["exchange"] = h5py.SoftLink("entry/raw")
        else:
            file["other"] = h5py.SoftLink("/entry/raw")
            exchange = file.create_group("exchange")
            for part in parts:
                exchange[part] = h5py.SoftLink(f"/{'other' if part == 'data' else 'entry/raw'}/{part}")
with h5py.File(path("external.h5"), "w") as file:
    for part in parts:
        file[f"exchange/{part}"] = h5py.ExternalLink("plain.h5", f"/exchange/{part}")
with h5py.File(path("virtual.h5"), "w", libver="latest") as file:
    for part, numbers in parts.items():
        layout = h5py.VirtualLayout(numbers.shape, numbers.dtype)
        half = len(numbers) // 2
        source = h5py.VirtualSource("plain.h5", f"exchange/{part}", numbers.shape)
        layout[:half], layout[half:] = source[:half], source[half:]
        file.create_group("exchange") if "exchange" not in file else None
        file["exchange"].create_virtual_dataset(part, layout)
# Half floats, and fields of one frame.
with h5py.File(path("half.h5"), "w") as file:
    file["exchange/data"] = parts["data"].astype(np.float16)
    file["exchange/data_white"] = np.full(parts["data"].shape[1:], 800, np.float16)
    file["exchange/data_dark"] = np.full(parts["data"].shape[1:], 50, np.float16)
with h5py.File(path("nan.h5"), "w") as file:
    for part, numbers in parts.items():
        file[f"exchange/{part}"] = np.where(np.arange(6) == 4, np.nan, numbers) if part == "theta" else numbers
# NXtomo: fields and projections in one volume.
with h5py.File(path("tomo.nxs"), "w") as file:
    entry = file.create_group("entry1/tomo_entry")
    order = [parts["data_dark"][:1], parts["data_white"], parts["data"], parts["data_dark"][1:2]]
    entry["data/data"] = np.concatenate(order)
    entry["instrument/detector/image_key"] = np.array([2, 1, 1, 0, 0, 0, 0, 0, 0, 2])
    angle = np.concatenate([np.zeros(3), np.deg2rad(parts["theta"]), np.zeros(1)])
    entry.create_dataset("sample/rotation_angle", data=angle).attrs["units"] = "rad"

# A stack as ImageJ writes large ones: one directory, and pixels that follow each other.
pictures, rows, columns = parts["data"].shape
text = f"ImageJ=1.53t\nimages={pictures}\nslices={pictures}\nloop=false\n\0".encode()
entries = [(254, 4, 1, 0), (256, 4, 1, columns), (257, 4, 1, rows), (258, 3, 1, 16 << 16), (259, 3, 1, 1 << 16),
           (262, 3, 1, 1 << 16), (270, 2, len(text), None), (273, 4, 1, None), (277, 3, 1, 1 << 16), (278, 4, 1, rows),
           (279, 4, 1, 2 * rows * columns)]
begin = 8 + 2 + 12 * len(entries) + 4
where = {270: begin, 273: begin + len(text)}
with open(path("imagej.tif"), "wb") as file:
    file.write(b"MM" + struct.pack(">HIH", 42, 8, len(entries)))
    for tag, kind, count, value in entries:
        file.write(struct.pack(">HHII", tag, kind, count, where.get(tag, value)))
    file.write(struct.pack(">I", 0) + text + parts["data"].astype(">u2").tobytes())
