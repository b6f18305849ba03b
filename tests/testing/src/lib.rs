//! Every check of the stock operators, for the operators of another crate.
//!
//! A crate declares operators in its `ops.yaml`; a file of one line in its `tests` folder checks them all:
//!
//! ```ignore
//! opsmith_testing::check_operators!(my_ops::LIBRARY, my_ops::DOCUMENTATION);
//! ```
//!
//! With that, `cargo test` calls each operator of the library with the `samples` of its entry (or with generated
//! arguments, if it has none) and compares:
//!
//! | test | comparison |
//! |---|---|
//! | `operators_have_samples_that_run` | every sample is accepted, and some call of every operator |
//! | `gradients_are_slopes` | gradients, second ones and tangents against differences, real and complex; strided, expanded and empty inputs; one result or input at a time; in place; in narrower dtypes |
//! | `wrong_gradients_would_be_noticed` | every formula, made wrong in five ways, fails the test above with these samples |
//! | `every_element_is_written` | results over two different fillings of their memory |
//! | `attributes_are_bounded` | every violation of a constraint of an attribute is rejected, with the allowed values |
//! | `out_forms_fill_empty_tensors` | the out form against the functional one |
//! | `backward_frees_what_was_saved` | bytes held by nodes after backward |
//! | `layouts_do_not_matter` | results and gradients of strided inputs, at special points (NaN, infinities, zeros, ties) and at sizes around blocks |
//! | `graphs_give_the_same_bits` | graphs against eager calls, as traced and after every pass |
//! | `gradients_in_graphs_give_the_same_bits` | the same, of gradients |
//! | `graphs_of_open_sizes_give_the_same_bits` | one graph at several sizes |
//! | `saved_graphs_give_the_same_bits` | graphs that were saved and loaded |
//! | `inferred_shapes_are_those_of_results` | inference from sizes, from symbols that are bound to several, and for inputs of unknown rank |
//! | `odd_arguments_are_results_or_errors` | some thousand odd calls: no panic, abort, hang or unbounded memory |
//! | `examples_of_the_documentation_run` | the program in each function's documentation; needs the second argument |
//!
//! Memory is counted by the program's allocator, so its test is a separate file:
//! [`check_allocations!`](check_allocations) finds kernels that allocate memory in a repeated run of a graph.
//!
//! Tensors are on the host, so an operator without a host kernel is skipped.
//!
//! A check of derivatives that cannot hold is skipped if the entry declares that with a reason: `tolerance:
//! {second_order: {skip: why}}`. Failures name the operator, its line in the spec, the check and the sample.
//!
//! With the environment variable `OPSMITH_RESULTS=FOLDER`, the outcomes are recorded for documents ([`results`]).
//!
//! The parts are public: [`checks`] of one operator, [`samples`] of it, calls at [`special`] points, odd calls
//! ([`fuzz`]).

pub mod allocation;
pub mod calls;
pub mod checks;
pub mod examples;
pub mod fuzz;
mod report;
pub mod results;
pub mod samples;
pub mod special;
pub mod suite;

pub use report::{Report, of_each, report, runs_on_host};

/// Tests of every operator that a library declares; the head of this crate lists them.
///
/// In a file of its own in a crate's `tests` folder; `my_ops` is the crate. The second argument may be left out; with it, the
/// programs of the documentation are tested as well, and a site that is made from the recorded results shows their output.
///
/// ```ignore
/// opsmith_testing::check_operators!(my_ops::LIBRARY, my_ops::DOCUMENTATION);
/// ```
#[macro_export]
macro_rules! check_operators {
    ($library:expr, $documentation:expr $(,)?) => {
        $crate::check_operators! { $library }

        #[test]
        fn examples_of_the_documentation_run() {
            $crate::examples::assert_run(&$documentation);
        }
    };
    ($library:expr $(,)?) => {
        $crate::check_operators! { @tests $library,
            operators_have_samples_that_run samples_run,
            gradients_are_slopes gradients,
            wrong_gradients_would_be_noticed wrong_gradients,
            every_element_is_written written,
            attributes_are_bounded constraints,
            out_forms_fill_empty_tensors out_forms,
            backward_frees_what_was_saved saved_memory,
            layouts_do_not_matter layouts,
            graphs_give_the_same_bits graphs,
            gradients_in_graphs_give_the_same_bits graph_gradients,
            graphs_of_open_sizes_give_the_same_bits symbolic_graphs,
            saved_graphs_give_the_same_bits saved_graphs,
            inferred_shapes_are_those_of_results inference,
        }

        #[test]
        fn odd_arguments_are_results_or_errors() {
            let name = concat!(module_path!(), "::odd_arguments_are_results_or_errors");
            $crate::suite::odd_calls(&$library, name);
        }
    };
    (@tests $library:expr, $($name:ident $check:ident,)+) => {
        $(
            #[test]
            fn $name() {
                $crate::suite::$check(&$library);
            }
        )+
    };
}

/// A test that no operator of a library allocates memory in a repeated run of a graph.
///
/// It sets the program's global allocator to one that counts, and no other test may run beside it, so it needs a file
/// of its own in a crate's `tests` folder; `my_ops` is the crate:
///
/// ```ignore
/// opsmith_testing::check_allocations!(my_ops::LIBRARY);
/// ```
#[macro_export]
macro_rules! check_allocations {
    ($library:expr $(,)?) => {
        #[global_allocator]
        static ALLOCATOR: $crate::allocation::Counting = $crate::allocation::Counting;

        #[test]
        fn warm_graphs_ask_for_no_memory() {
            $crate::allocation::warm_graphs(&$library).report.assert_right();
        }
    };
}
