"""Times of other programs on an HLO proto: `peers.py DESCRIPTORS FILE RUNS` prints `name seconds` a line, the least of
the runs; `absent` instead of seconds where the package is not installed. Protobuf's parser (upb) gets the bytes from
memory and parses the fields that Highwater reads; XProf answers one request for its memory viewer."""

import os
import sys
import tempfile
import time


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def trace_of(module):
    """A trace (XSpace) with one module in it, as the profiler stores modules: a statistic of an event's metadata."""
    name = b"bench(1)"
    statistic = field(1, 1) + field(6, module)
    event = field(1, 1) + field(2, name) + field(4, name) + field(5, statistic)
    plane = field(2, b"/host:metadata") + field(4, field(1, 1) + field(2, event))
    plane += field(5, field(1, 1) + field(2, field(1, 1) + field(2, b"Hlo Proto")))
    return field(1, plane)


def least(run, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return f"{min(times):.4f}"


def upb(descriptors, module, runs):
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        return "absent"
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("highwater.hlo.HloProto"))
    return least(lambda: message.FromString(module), runs)


def upb_whole(module, runs):
    """With every field that XLA writes, where TensorFlow is installed: it has the message as XLA defines it."""
    try:
        from tensorflow.compiler.xla.service import hlo_pb2
    except ImportError:
        return "absent"
    return least(lambda: hlo_pb2.HloProto.FromString(module), runs)


def xprof(module, runs):
    try:
        from xprof.convert import raw_to_tool_data as convert
    except ImportError:
        return "absent"

    def answer():
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "plugins", "profile", "run")
            os.makedirs(run)
            path = os.path.join(run, "host.xplane.pb")
            with open(path, "wb") as file:
                file.write(trace)
            convert.xspace_to_tool_names([path])
            (key,) = [name for name in os.listdir(run) if name.endswith(".hlo_proto.pb")]
            options = {"module_name": key[: -len(".hlo_proto.pb")], "program_id": "", "memory_space": "0"}
            data, _ = convert.xspace_to_tool_data([path], "memory_viewer", options)
            if not data:
                raise SystemExit("XProf gave no answer")

    trace = trace_of(module)
    return least(answer, max(2, runs // 3))


def main():
    descriptors, path, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(path, "rb") as file:
        module = file.read()
    with open(descriptors, "rb") as file:
        print("upb", upb(file.read(), module, runs))
    print("whole", upb_whole(module, runs))
    print("xprof", xprof(module, runs))


if __name__ == "__main__":
    main()
