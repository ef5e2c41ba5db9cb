"""The module with a real compiler; needs jax, and libtpu for what is compiled for a TPU."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import highwater

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_LIBTPU = importlib.util.find_spec("libtpu") is not None
HAS_PYTEST = importlib.util.find_spec("pytest") is not None


@unittest.skipUnless(HAS_JAX, "jax is not installed")
class OnThisMachine(unittest.TestCase):
    def test_a_function_is_compiled_and_not_run(self):
        import jax
        import jax.numpy as jnp

        ran = []

        def step(x):
            jax.debug.callback(lambda: ran.append(True))
            return jnp.tanh(x @ x) @ x

        report = highwater.profile(step, jax.ShapeDtypeStruct((512, 512), "float32"))
        self.assertEqual(report.name, "jit_step")
        self.assertGreaterEqual(report.peak_bytes, 3 * 512 * 512 * 4)
        self.assertIsNone(report.fits, "this machine's memory is no limit that XLA knows")
        self.assertEqual(ran, [])
        lowered = jax.jit(lambda x: x + 1).lower(jnp.ones(8))
        self.assertIn("lambda", highwater.profile(lowered).name)
        self.assertIs(highwater.profile(step, jnp.ones((64, 64)), capacity="1MiB").fits, True)

    def test_a_program_in_the_compilation_cache_is_compiled_all_the_same(self):
        import jax
        import jax.numpy as jnp

        code = (
            "import jax, jax.numpy as jnp, highwater\n"
            "f = jax.jit(lambda x: jnp.sin(x) @ x)\n"
            "f(jnp.ones((256, 256)))\n"
            "for i in range(2): assert highwater.profile(f, jnp.ones((256, 256))).peak_bytes, i\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            cached = {
                "JAX_COMPILATION_CACHE_DIR": folder,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            }
            for _ in range(2):
                subprocess.run([sys.executable, "-c", code], env={**os.environ, **cached}, check=True)


@unittest.skipUnless(HAS_JAX and HAS_LIBTPU, "jax or libtpu is not installed")
class ForTpus(unittest.TestCase):
    def test_one_function_on_several_chips(self):
        import jax
        import jax.numpy as jnp

        def step(x):
            return (jnp.sin(x) @ x).sum()

        big = jax.ShapeDtypeStruct((49152, 49152), "bfloat16")
        reports = highwater.fits_on(step, big, topologies=["v5e:2x2", "v6e:2x2", "v5p:2x2x1"])
        self.assertEqual(list(reports), ["v5e:2x2", "v6e:2x2", "v5p:2x2x1"])
        self.assertEqual([report.device for report in reports.values()], ["TPU v5e", "TPU v6e", "TPU v5p"])
        self.assertTrue(all(report.allocated_bytes > 2 * 49152**2 for report in reports.values()))

    def test_what_does_not_fit_is_said_with_its_plan(self):
        import jax

        def f(key):
            a = jax.random.normal(key, (327680, 327680))
            return a @ a

        with self.assertRaises(AssertionError) as caught:
            highwater.assert_fits(f, jax.random.PRNGKey(0), topology="v5e:2x2")
        self.assertRegex(str(caught.exception), r"jit_f needs \d+ GiB of 15.8 GiB: does not fit")

    @unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
    def test_the_fixture_of_pytest(self):
        with tempfile.TemporaryDirectory() as folder:
            test = pathlib.Path(folder, "test_memory.py")
            test.write_text(
                "import jax\n"
                "def test_small(assert_fits):\n"
                "    assert_fits(lambda x: x @ x, jax.ShapeDtypeStruct((256, 256), 'float32'), topology='v5e:1x1')\n"
                "def test_large(assert_fits):\n"
                "    big = jax.ShapeDtypeStruct((1 << 17, 1 << 17), 'float32')\n"
                "    assert_fits(lambda x: x @ x, big, topology='v5e:1x1')\n"
            )
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "--junitxml", os.path.join(folder, "out.xml"), str(test)],
                capture_output=True,
                check=False,
                # This process holds the library already.
                env={**os.environ, "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"},
                text=True,
            )
            self.assertIn("1 failed, 1 passed", done.stdout)
            self.assertIn("does not fit", done.stdout)
            self.assertIn("highwater_allocated_bytes", pathlib.Path(folder, "out.xml").read_text())


if __name__ == "__main__":
    unittest.main()
