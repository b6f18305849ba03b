//! Values of a spec's expressions, and conversions between their types.
//!
//! In: values as calls have them. Out: the same in the type that another place wants: an integer as a list, a number as one of
//! any kind. The checker put a conversion wherever types differ, so that no value has another type than its place.

use opsmith_codegen::model::{ItemKind, Kind, Ty};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::lists::{Lists, OwnedLists};
use opsmith_runtime::{Scalar, Tensor, Text};

/// A value, or several.
#[derive(Clone, Debug)]
pub enum Item {
    /// One value.
    One(Value),
    /// The values of a tuple.
    Several(Vec<Item>),
}

impl From<Value> for Item {
    fn from(value: Value) -> Item {
        Item::One(value)
    }
}

/// The error of a value that the checker should not have let through.
#[cold]
pub fn defect(what: &str, item: &Item) -> Error {
    let kind = match item {
        Item::One(value) => value.as_arg().kind(),
        Item::Several(_) => "several values",
    };
    Error::argument(format!("a spec's expression has {kind} where {what} is expected"))
        .with_help("this is a mistake of the checker: please report the spec")
}

impl Item {
    /// The value, if it is one.
    ///
    /// # Errors
    /// If there are several.
    pub fn one(self) -> Result<Value> {
        match self {
            Item::One(value) => Ok(value),
            several => Err(defect("one value", &several)),
        }
    }

    /// A tensor.
    pub fn tensor(self) -> Result<Tensor> {
        self.one()?.into_tensor()
    }

    /// An optional tensor.
    pub fn optional_tensor(self) -> Result<Option<Tensor>> {
        match self.one()? {
            Value::None => Ok(None),
            value => value.into_tensor().map(Some),
        }
    }

    /// A truth value.
    pub fn truth(&self) -> Result<bool> {
        match self {
            Item::One(Value::Bool(value)) => Ok(*value),
            other => Err(defect("a truth value", other)),
        }
    }

    /// An integer.
    pub fn int(&self) -> Result<i64> {
        match self {
            Item::One(Value::Int(value)) => Ok(*value),
            other => Err(defect("an integer", other)),
        }
    }

    /// A number of any kind.
    pub fn scalar(&self) -> Result<Scalar> {
        Ok(match self {
            Item::One(Value::Scalar(value)) => *value,
            Item::One(Value::Int(value)) => Scalar::Int(*value),
            Item::One(Value::Float(value)) => Scalar::Float(*value),
            Item::One(Value::Bool(value)) => Scalar::Bool(*value),
            other => return Err(defect("a number", other)),
        })
    }

    /// Whether it is absent.
    pub fn is_none(&self) -> bool {
        matches!(self, Item::One(Value::None))
    }

    /// The same in another type.
    ///
    /// # Errors
    /// If no conversion leads there.
    pub fn converted(self, to: &Ty) -> Result<Item> {
        if self.is_none() {
            return Ok(self);
        }
        let value = match (self, &to.kind) {
            (Item::Several(items), Kind::Tuple(types)) => {
                let each = items.into_iter().zip(types).map(|(item, ty)| item.converted(ty));
                return each.collect::<Result<_>>().map(Item::Several);
            }
            (item, _) => item.one()?,
        };
        Ok(Item::One(match (value, &to.kind) {
            (Value::Int(value), Kind::Float) => Value::Float(value as f64),
            (Value::Bool(value), Kind::Int) => Value::Int(i64::from(value)),
            (Value::Int(value), Kind::Scalar) => Value::Scalar(Scalar::Int(value)),
            (Value::Float(value), Kind::Scalar) => Value::Scalar(Scalar::Float(value)),
            (Value::Bool(value), Kind::Scalar) => Value::Scalar(Scalar::Bool(value)),
            (Value::Int(value), Kind::Ints(length)) => Value::Ints(vec![value; length.unwrap_or(1) as usize]),
            (Value::Ints(list), Kind::Floats) => {
                Value::Floats(list.iter().map(|value| *value as f64).collect())
            }
            (Value::Ints(list), Kind::Scalars) => Value::Scalars(list.into_iter().map(Scalar::Int).collect()),
            (Value::Tensors(list), Kind::OptionalTensors) => {
                Value::OptionalTensors(list.into_iter().map(Some).collect())
            }
            // Nothing but the place says the type of an empty list.
            (
                Value::Ints(_),
                kind @ (Kind::Tensors | Kind::OptionalTensors | Kind::Bools(_) | Kind::Strs | Kind::DTypes),
            ) => list(Vec::new(), kind)?,
            (Value::Ints(_), Kind::Lists(item)) => Value::Lists(Box::new(OwnedLists::empty(*item))),
            (Value::Lists(rows), Kind::Lists(item)) => Value::Lists(Box::new(match (*rows, item) {
                (OwnedLists::Int(rows), ItemKind::Scalar) => {
                    OwnedLists::Scalar(rows.map(|value| Scalar::Int(*value)))
                }
                (OwnedLists::Int(rows), ItemKind::Float) => {
                    OwnedLists::Float(rows.map(|value| *value as f64))
                }
                (rows, _) => rows,
            })),
            (value, _) => value,
        }))
    }

    /// One of several values, or of a list.
    ///
    /// # Errors
    /// If there is none at that position.
    pub fn at(&self, position: i64) -> Result<Item> {
        use opsmith_runtime::checked::{item, row};
        Ok(Item::One(match self {
            Item::Several(items) => return item(items, position).cloned(),
            Item::One(Value::Tensors(list)) => Value::Tensor(item(list, position)?.clone()),
            Item::One(Value::OptionalTensors(list)) => {
                item(list, position)?.clone().map_or(Value::None, Value::Tensor)
            }
            Item::One(Value::Ints(list)) => Value::Int(*item(list, position)?),
            Item::One(Value::Floats(list)) => Value::Float(*item(list, position)?),
            Item::One(Value::Bools(list)) => Value::Bool(*item(list, position)?),
            Item::One(Value::Scalars(list)) => Value::Scalar(*item(list, position)?),
            Item::One(Value::Strs(list)) => Value::Str(item(list, position)?.clone().into_owned()),
            Item::One(Value::DTypes(list)) => Value::DType(*item(list, position)?),
            Item::One(Value::Lists(lists)) => match &**lists {
                OwnedLists::Int(lists) => Value::Ints(row(lists, position)?.to_vec()),
                OwnedLists::Float(lists) => Value::Floats(row(lists, position)?.to_vec()),
                OwnedLists::Bool(lists) => Value::Bools(row(lists, position)?.to_vec()),
                OwnedLists::Scalar(lists) => Value::Scalars(row(lists, position)?.to_vec()),
                OwnedLists::Str(lists) => Value::Strs(row(lists, position)?.to_vec()),
                OwnedLists::DType(lists) => Value::DTypes(row(lists, position)?.to_vec()),
            },
            Item::One(Value::None) => {
                opsmith_runtime::checked::present(None::<()>)?;
                Value::None
            }
            other => return Err(defect("a list", other)),
        }))
    }
}

/// A list of a type from its items.
///
/// # Errors
/// If an item has another type.
pub fn list(items: Vec<Item>, kind: &Kind) -> Result<Value> {
    fn all<T>(items: Vec<Item>, read: impl Fn(Value) -> Option<T>) -> Result<Vec<T>> {
        let one = |item: Item| {
            let value = item.one()?;
            let kept = Item::One(value.clone());
            read(value).ok_or_else(|| defect("an item of a list", &kept))
        };
        items.into_iter().map(one).collect()
    }
    macro_rules! plain {
        ($variant:ident) => {
            |value| match value {
                Value::$variant(value) => Some(value),
                _ => None,
            }
        };
    }
    Ok(match kind {
        Kind::Ints(_) => Value::Ints(all(items, plain!(Int))?),
        Kind::Floats => Value::Floats(all(items, plain!(Float))?),
        Kind::Bools(_) => Value::Bools(all(items, plain!(Bool))?),
        Kind::Scalars => Value::Scalars(items.iter().map(Item::scalar).collect::<Result<_>>()?),
        Kind::Strs => Value::Strs(all(items, plain!(Str))?.into_iter().map(Text::from).collect()),
        Kind::DTypes => Value::DTypes(all(items, plain!(DType))?),
        Kind::Tensors => Value::Tensors(all(items, plain!(Tensor))?),
        Kind::OptionalTensors => {
            Value::OptionalTensors(items.into_iter().map(Item::optional_tensor).collect::<Result<_>>()?)
        }
        Kind::Lists(item) => {
            let row = Ty::new(kind.item().map_or(Kind::None, |ty| ty.kind));
            let items = items.into_iter().map(|item| item.converted(&row)).collect::<Result<Vec<_>>>()?;
            macro_rules! rows {
                ($variant:ident of $list:ident) => {
                    OwnedLists::$variant(Lists::from_iter(all(items, plain!($list))?))
                };
            }
            Value::Lists(Box::new(match item {
                ItemKind::Int => rows!(Int of Ints),
                ItemKind::Float => rows!(Float of Floats),
                ItemKind::Bool => rows!(Bool of Bools),
                ItemKind::Scalar => rows!(Scalar of Scalars),
                ItemKind::Str => rows!(Str of Strs),
                ItemKind::DType => rows!(DType of DTypes),
            }))
        }
        _ => return Err(defect("a list", &Item::Several(items))),
    })
}
