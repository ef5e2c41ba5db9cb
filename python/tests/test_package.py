"""The module and the program it comes with, without JAX: `python -m unittest discover python/tests`."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import highwater

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "sample_profiles"
OVER = SAMPLES / "v5e_gpt_m_oom"
FITS = SAMPLES / "v5e_mlp_f32"


class Lowered:
    """Stands in for what JAX lowered: compiling it writes a dump, and may fail."""

    def __init__(self, dump, error=None):
        self.dump, self.error, self.options = dump, error, None

    def compile(self, compiler_options):
        self.options = compiler_options
        if self.dump is not None:
            shutil.copytree(self.dump, compiler_options["xla_dump_to"], dirs_exist_ok=True)
        if self.error is not None:
            raise self.error


class TheReport(unittest.TestCase):
    def test_numbers_are_those_of_the_command(self):
        report = highwater.read(OVER)
        self.assertIs(report.fits, False)
        self.assertEqual(report.name, "jit_train_step")
        self.assertEqual(report.device, "TPU v5e")
        self.assertEqual(report.allocated_bytes, 27806004736)
        self.assertEqual(report.capacity_bytes, 16911433728)
        self.assertEqual(report.peak_bytes, 27770894336)
        self.assertIs(highwater.read(OVER, capacity="64GiB").fits, True)
        self.assertIsNone(highwater.read(OVER, capacity="64GiB").plan)

    def test_it_explains_itself(self):
        report = highwater.read(OVER)
        self.assertGreater(len(report.findings), 2)
        self.assertTrue(all(finding.title and finding.why for finding in report.findings))
        self.assertIn("fits", report.plan.summary)
        text = report.explain()
        self.assertTrue(text.startswith("jit_train_step needs 25.9 GiB of 15.8 GiB: does not fit\n  layer_*: "), text)
        self.assertIn("plan: ", text)
        self.assertIn("27,806,004,736", report.to_markdown())
        self.assertEqual(report.to_dict()["schema"], "highwater.report/1")
        json.dumps(report.to_dict())

    def test_it_is_saved_where_nothing_is(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = highwater.read(OVER).save(os.path.join(folder, "kept"))
            self.assertEqual(highwater.read(saved).allocated_bytes, 27806004736)
            with self.assertRaises(FileExistsError):
                highwater.read(OVER).save(saved)

    def test_a_notebook_shows_the_overview_in_both_themes(self):
        bundle = highwater.read(OVER)._repr_mimebundle_()
        self.assertIn("does not fit", bundle["text/plain"])
        self.assertEqual(bundle["text/html"].count("data:image/png;base64,iVBOR"), 2)
        self.assertIn("<li>", bundle["text/html"])

    def test_what_cannot_be_read_is_an_error_with_the_command_s_words(self):
        with self.assertRaisesRegex(RuntimeError, "/nonexistent/dump"):
            highwater.read("/nonexistent/dump")


class Compiling(unittest.TestCase):
    def test_a_program_that_runs_out_of_memory_is_reported(self):
        lowered = Lowered(OVER, RuntimeError("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm."))
        report = highwater.profile(lowered, compiler_options={"xla_x": 1})
        self.assertIs(report.fits, False)
        self.assertEqual(lowered.options["xla_x"], 1)
        folder = report.folder
        self.assertTrue(os.path.isdir(folder))
        del report
        self.assertFalse(os.path.exists(folder), "a private folder goes with its report")

    def test_another_error_is_raised_as_it_is(self):
        lowered = Lowered(None, ValueError("no such option"))
        with self.assertRaisesRegex(ValueError, "no such option"):
            highwater.profile(lowered)
        self.assertFalse(os.path.exists(lowered.options["xla_dump_to"]))

    def test_an_assertion_says_what_to_do(self):
        with self.assertRaises(AssertionError) as caught:
            highwater.assert_fits(Lowered(OVER))
        text = str(caught.exception)
        self.assertIn("does not fit\n  layer_*: ", text)
        self.assertEqual(text.count(" at the peak"), 3)
        self.assertIn("\nplan: ", text)
        report = highwater.assert_fits(Lowered(FITS))
        self.assertIs(report.fits, True)
        tight = report.allocated_bytes * 102 // 100
        with self.assertRaisesRegex(AssertionError, "fits .wanted: 5% to spare."):
            highwater.assert_fits(Lowered(FITS), capacity=tight)
        highwater.assert_fits(Lowered(FITS), capacity=tight, headroom=0.01)


class TheProgram(unittest.TestCase):
    def test_it_runs_as_a_module(self):
        done = subprocess.run([sys.executable, "-m", "highwater", "--version"], capture_output=True, check=True)
        self.assertTrue(done.stdout.startswith(b"highwater "))

    def test_no_module_but_the_standard_library_is_loaded(self):
        code = (
            "import sys, os; before = set(sys.modules); import highwater; "
            "print([m for m in set(sys.modules) - before "
            "if m.split('.')[0] not in sys.stdlib_module_names and m.split('.')[0] != 'highwater' "
            "and not m.startswith('_sysconfigdata')])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        self.assertEqual(done.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
