"""The peak table: its arithmetic, its names, its traps, and that an unknown GPU has no peak at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfupipe import devices
from mfupipe.devices import Device, all_devices, ceilings_for, describe, find, lookup, nearest, parse_peaks, peaks_table
from mfupipe.errors import EnvironmentProblem, UsageError

# FLOP per clock and SM by chip, dense, accumulating in fp32 (research: NVIDIA architecture whitepapers).
RATE = {
    "GV100": {"fp32": 128, "fp16": 1024},
    "TU104": {"fp32": 128, "fp16": 1024, "int8": 2048},
    "GA100": {"fp64": 64, "fp64_tensor": 128, "fp32": 128, "tf32": 1024, "bf16": 2048, "int8": 4096},
    "GA102-pro": {"fp32": 256, "tf32": 512, "bf16": 1024, "int8": 2048},
    "GA102-geforce": {"fp32": 256, "tf32": 256, "bf16": 512, "int8": 2048},
    "AD10x-pro": {"fp32": 256, "tf32": 512, "bf16": 1024, "fp8": 2048, "int8": 2048},
    "AD102-geforce": {"fp32": 256, "tf32": 256, "bf16": 512, "fp8": 1024, "int8": 2048},
    "GH100": {"fp64": 128, "fp64_tensor": 256, "fp32": 256, "tf32": 2048, "bf16": 4096, "fp8": 8192, "int8": 8192},
    "GB202-geforce": {"fp32": 256, "tf32": 256, "bf16": 512, "fp8": 1024, "fp4": 4096, "int8": 2048},
    "GB100": {"fp32": 256, "tf32": 4096, "bf16": 8192, "fp8": 16384, "fp4": 32768, "int8": 16384},
    "GB110": {"fp32": 256, "tf32": 4096, "bf16": 8192, "fp8": 16384, "fp4": 49152},
}
TENSOR = {"fp16", "bf16", "tf32", "fp8", "fp4", "int8"}
# The sheet itself rounds or contradicts itself there (see `trap`), by up to this many percent.
ROUNDED_PCT = {("L40S", "bf16"): 1.2, ("B300", "fp32"): 2.6}


@pytest.fixture(autouse=True)
def no_calibration_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def known(name: str) -> Device:
    device = lookup(name)
    assert device is not None
    return device


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.key)
def test_each_peak_is_sm_count_times_rate_times_clock(device: Device) -> None:
    for dtype, rate in RATE[device.chip].items():
        clock_hz = device.tensor_peak_hz if dtype in TENSOR else device.boost_hz
        derived = device.sm_counts[0] * rate * clock_hz
        limit = ROUNDED_PCT.get((device.key, dtype), 1.0) / 100
        assert device.peak_flop_per_s(dtype) == pytest.approx(derived, rel=limit), dtype


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.key)
def test_each_row_says_where_it_is_from_and_names_itself(device: Device) -> None:
    assert device.source and device.confidence in ("high", "medium", "low")
    for name in (device.name, *device.aliases, device.key):
        assert lookup(name, device.sm_counts[0], device.boost_hz) == device
    assert device.bytes_per_s >= 3e11 and device.l2_bytes >= 4 << 20


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H200", "H200-SXM"),
        ("H200", "H200-SXM"),
        ("NVIDIA H200 NVL", "H200-NVL"),
        ("H100 80GB HBM3", "H100-SXM5"),
        ("NVIDIA H100 PCIe", "H100-PCIE"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIE-80"),
        ("A100-PCIE-40GB", "A100-PCIE-40"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2"),
        ("NVIDIA L4", "L4"),
        ("nvidia l40s", "L40S"),
        ("NVIDIA A10", "A10"),
    ],
)
def test_a_name_matches_by_all_its_words(name: str, key: str) -> None:
    assert known(name).key == key


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA L40",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 5060 Ti",
        "NVIDIA GB999 Prototype",
        "NVIDIA H200 MIG 1g.18gb",
        "H100",
        "A100",
        "NVIDIA",
        "",
    ],
)
def test_a_name_that_is_not_in_the_table_has_no_peak(name: str) -> None:
    device, problems = find(name)
    assert device is None
    assert [problem.code for problem in problems] == ["unknown_gpu_peak"]
    table, told = ceilings_for([(name, None)])
    assert table.num_rows == 0 and told == problems


def test_an_ambiguous_name_lists_what_it_could_be() -> None:
    (problem,) = find("H100")[1]
    assert problem.detail == (
        "'H100' could be NVIDIA H100 80GB HBM3 or NVIDIA H100 PCIe or NVIDIA H100 NVL, whose peaks differ"
    )


def test_a_mistyped_name_gets_the_nearest() -> None:
    assert "H200-SXM" in [device.key for device in nearest("NVIDIA H20")]
    assert nearest("zzzzzz") == ()
    assert "nearest: NVIDIA A10" in find("NVIDIA A10G")[1][0].detail


def test_a_slice_of_a_gpu_is_told_by_its_name_or_by_its_sm_count() -> None:
    assert "MIG" in find("NVIDIA H200 MIG 1g.18gb")[1][0].detail
    device, (problem,) = find("NVIDIA H200", 16)
    assert device is None and problem.code == "device_mismatch"
    assert problem.detail.startswith("'NVIDIA H200' has 16 SM in the trace, 132 in the peak table")


def test_a_gpu_whose_sm_count_differs_by_source_matches_both() -> None:
    assert lookup("NVIDIA GB200", 148) == lookup("NVIDIA GB200", 152) == known("NVIDIA GB200")
    assert lookup("NVIDIA GB200", 160) is None


def test_the_h200_of_a_real_capture_agrees_with_the_table() -> None:
    device, problems = find("NVIDIA H200", 132, 1_980_000_000, 4_814_304_000_000)
    assert device == known("H200") and problems == ()


def test_a_bandwidth_that_contradicts_the_table_leaves_no_memory_ceiling() -> None:
    # GH200 exists with HBM3 (4.0 TB/s) and HBM3e (4.9 TB/s).
    table, (problem,) = ceilings_for([("NVIDIA GH200 480GB", 132, 1_980_000_000, 4_900_000_000_000)])
    assert problem.code == "device_mismatch" and "4.90 TB/s in the trace, 4.00" in problem.detail
    dtypes = table.column("dtype").to_pylist()
    assert "bf16" in dtypes and "bytes" not in dtypes


def test_a_clock_that_contradicts_the_table_is_told_and_keeps_the_peaks() -> None:
    device, (problem,) = find("NVIDIA H200", 132, 1_000_000_000)
    assert device is not None and "clocks up to 1000 MHz in the trace, 1980" in problem.detail


def test_peaks_are_dense_and_of_the_clock_the_vendor_quotes() -> None:
    h200 = known("NVIDIA H200")
    assert h200.peak_flop_per_s("bf16") == 989.4e12  # 1979 is sparse, 1070.5 would be at the 1980 MHz of a trace
    assert h200.peak_flop_per_s("tf32") == 494.7e12
    assert h200.peak_flop_per_s("fp32") == 66.9e12  # at 1980 MHz
    assert known("NVIDIA A100-SXM4-80GB").peak_flop_per_s("fp8") is None  # GA100 has none
    assert known("NVIDIA L4").peak_flop_per_s("bf16") == 121e12 and known("NVIDIA L4").bytes_per_s == 0.3e12
    assert known("Tesla V100-SXM2").peak_flop_per_s("bf16") is None
    assert known("Tesla V100-PCIE").peak_flop_per_s("fp16") == 112e12
    assert known("NVIDIA B300").peak_flop_per_s("int8") is None
    assert known("NVIDIA GeForce RTX 4090").peak_flop_per_s("bf16") == 165.2e12  # 330 accumulates in fp16


def test_ceilings_of_a_trace_have_one_row_per_dtype_kind_and_condition() -> None:
    table, problems = ceilings_for([("NVIDIA H200", 132), ("NVIDIA H200", 132)])
    assert problems == () and table.schema == devices.PEAKS_SCHEMA
    rows = {(row["dtype"], row["kind"], row["condition"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows
    assert rows["bf16", "datasheet", ""]["flop_per_s"] == 989.4e12
    assert rows["bytes", "datasheet", ""] | {"source": ""} == {
        "device_name": "NVIDIA H200",
        "sm_count": 132,
        "dtype": "bytes",
        "kind": "datasheet",
        "condition": "",
        "flop_per_s": None,
        "bytes_per_s": 4.8e12,
        "source": "",
        "key": "H200-SXM",
    }
    assert rows["bf16", "measured", "burst"]["flop_per_s"] == 900e12
    assert rows["bf16", "measured", "sustained"]["flop_per_s"] == 662e12
    assert rows["bytes", "measured", "burst"]["bytes_per_s"] == 4.53e12
    assert "measured on one H200" in rows["tf32", "measured", "sustained"]["source"]


def test_a_device_never_measured_has_datasheet_rows_only() -> None:
    assert set(peaks_table(["NVIDIA A100-SXM4-80GB"]).column("kind").to_pylist()) == {"datasheet"}


def test_a_guessed_row_says_so_in_its_source() -> None:
    assert set(peaks_table(["NVIDIA GB200"]).column("source").to_pylist()) == {
        f"{known('GB200').source} (confidence: low)"
    }


def calibrate(text: str) -> None:
    devices.calibrated_path().parent.mkdir(parents=True)
    devices.calibrated_path().write_text(text, encoding="utf-8")


def test_a_calibration_of_this_machine_replaces_the_shipped_ceilings() -> None:
    head = "device_name,dtype,kind,condition,flop_per_s,bytes_per_s,source\n"
    calibrate(head + "NVIDIA H200,bf16,measured,burst,801000000000000.0,,mfupipe calibrate\n")
    rows = [row for row in peaks_table(["H200"]).to_pylist() if row["kind"] == "measured"]
    assert [(row["dtype"], row["condition"], row["flop_per_s"]) for row in rows] == [("bf16", "burst", 801e12)]


def test_a_damaged_calibration_is_an_error_and_not_ignored() -> None:
    calibrate("device_name,dtype\nNVIDIA H200,bf16\n")
    with pytest.raises(EnvironmentProblem, match="cannot be read as ceilings"):
        peaks_table(["H200"])


def test_peaks_given_by_hand_are_parsed() -> None:
    assert parse_peaks("bf16=989.4e12, bytes=4.8e12") == {"bf16": 989.4e12, "bytes": 4.8e12}


@pytest.mark.parametrize("text", ["", "bf16", "bf16=", "bf16=-1", "bf16=nan", "bf16=inf", "b16=1e12", "bf16=1,bf16=2"])
def test_a_peak_that_is_no_peak_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--peak"):
        parse_peaks(text)


def test_a_device_in_one_line_states_dtype_dense_and_source() -> None:
    assert describe("NVIDIA H200").startswith("NVIDIA H200: bf16 989.4 TFLOP/s dense, 4.80 TB/s (NVIDIA H200 datasheet")
    assert describe("Tesla V100-SXM2").startswith("Tesla V100-SXM2: fp16 125.0 TFLOP/s dense")
    with pytest.raises(EnvironmentProblem, match="not in the peak table"):
        describe("NVIDIA A10G")
