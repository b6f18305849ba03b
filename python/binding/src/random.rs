//! Random generators as Python objects.
//!
//! In: seeds. Out: generators, and the state of the default one.

use opsmith_runtime::random::{self, Generator, GeneratorState};
use pyo3::prelude::*;

/// A source of random numbers, for the argument `generator` of operators.
#[pyclass(name = "Generator", module = "opsmith", frozen)]
#[derive(Clone)]
pub struct PyGenerator(pub Generator);

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (seed=0))]
    fn new(seed: u64) -> PyGenerator {
        PyGenerator(Generator::new(seed))
    }

    /// Starts again, with another seed.
    fn manual_seed(slf: Bound<'_, Self>, seed: u64) -> Bound<'_, Self> {
        slf.get().0.manual_seed(seed);
        slf
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// A pickle has the place in the sequence, from which its generator continues.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (u64, u64))> {
        let GeneratorState { seed, offset } = slf.get().0.state();
        Ok((slf.get_type().getattr("_from_state")?, (seed, offset)))
    }

    /// The generator of a pickle.
    #[staticmethod]
    fn _from_state(seed: u64, offset: u64) -> PyGenerator {
        let generator = Generator::new(seed);
        generator.set_state(GeneratorState { seed, offset });
        PyGenerator(generator)
    }

    fn __repr__(&self) -> String {
        format!("opsmith.Generator(seed={})", self.0.seed())
    }
}

/// Starts the default generator again, with a seed: later random numbers are then the same in every run.
#[pyfunction]
fn manual_seed(seed: u64) {
    random::manual_seed(seed);
}

/// Adds the class and the seed of the default generator.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGenerator>()?;
    module.add("default_generator", PyGenerator(random::default_generator().clone()))?;
    module.add_function(wrap_pyfunction!(manual_seed, module)?)
}
