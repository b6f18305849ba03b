//! Hyperparameters: named numbers of an update rule, so that state dicts have them.

/// A number or switch of an update rule.
pub trait Hyperparameter: Copy {
    /// As a number: 0 and 1 for a switch.
    fn to_number(self) -> f64;
    /// From a number.
    fn from_number(number: f64) -> Self;
}

impl Hyperparameter for f64 {
    fn to_number(self) -> f64 {
        self
    }

    fn from_number(number: f64) -> f64 {
        number
    }
}

impl Hyperparameter for bool {
    fn to_number(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn from_number(number: f64) -> bool {
        number != 0.0
    }
}

/// The options of an optimizer, as [`config!`](crate::config::config) makes them, with methods for all by name.
macro_rules! hyperparameters {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty = $default:expr;)* }
    ) => {
        $crate::config::config! {
            $(#[$doc])*
            $name { $($(#[$field_doc])* $field: $ty = $default;)* }
        }

        impl $name {
            /// Names and values.
            fn named(&self) -> Vec<(&'static str, f64)> {
                use $crate::optim::Hyperparameter as _;
                vec![$((stringify!($field), self.$field.to_number())),*]
            }

            /// Sets one by name.
            fn set_named(&mut self, name: &str, value: f64) {
                use $crate::optim::Hyperparameter as _;
                match name {
                    $(stringify!($field) => self.$field = <$ty>::from_number(value),)*
                    _ => {}
                }
            }
        }
    };
}

/// The methods of an update rule that are the same for all.
macro_rules! rule_methods {
    () => {
        fn learning_rate(&self) -> f64 {
            self.learning_rate
        }

        fn set_learning_rate(&mut self, learning_rate: f64) {
            self.learning_rate = learning_rate;
        }

        fn hyperparameters(&self) -> Vec<(&'static str, f64)> {
            self.named()
        }

        fn set_hyperparameter(&mut self, name: &str, value: f64) {
            self.set_named(name, value);
        }
    };
}

use opsmith::{AddOptions, Error, Result, Tensor, TensorOps};
pub(crate) use {hyperparameters, rule_methods};

/// Refuses a hyperparameter outside a range.
pub(crate) fn check(
    name: &str,
    value: f64,
    range: impl std::ops::RangeBounds<f64>,
    words: &str,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::value(format!("{name} is {value}")).with_help(format!("give {words}")))
}

/// The gradient of the loss and of half the squared parameter times a factor.
pub(crate) fn decayed(parameter: &Tensor, gradient: &Tensor, decay: f64) -> Result<Tensor> {
    if decay == 0.0 {
        return Ok(gradient.clone());
    }
    gradient.add_with(parameter, AddOptions::new().alpha(decay))
}
