//! Pointwise expressions to loops on devices: a struct in CUDA C++ for each loop, and the code that launches it.
//!
//! In: an operator with a pointwise expression. Out: its row for devices, or nothing if the expression needs a scalar function
//! that devices do not have. The text is that of `kernels/cuda/loop.cuh`: a struct with the numbers of a call as fields and the
//! expression as its call operator.

mod text;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::kernels::{Adapter, Entries, row_part};
use super::names::{Taken, parameter, position};
use super::{Generation, bind};
use crate::analysis::elements::{uniform_condition, with_branch};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, DEVICE_LOOPS, Element, Op};

/// The row's adapter: a function for all dtypes, and for each dtype a kernel that calls it.
pub(super) fn kernel(generation: &Generation<'_>, op: &Op) -> Option<Adapter> {
    let expr = op.body.pointwise.as_ref()?;
    let headers = &generation.config.device.as_ref()?.headers;
    let name = row_part(op, DEVICE_LOOPS, "kernel");
    let taken = Taken::by(op, [expr]);
    let (call, dtype, source) = (taken.free("call"), taken.free("dtype"), taken.free("source"));
    if let ExprKind::Variable(Variable::Arg(index)) = expr.kind
        && op.args[index].element == Element::Any
    {
        let index = position(index);
        let definition = quote! {
            fn #name(call: &KernelCall<'_>) -> rt::Result<()> {
                device_loop::copy(call, #index)
            }
        };
        return Some(Adapter { definition, entries: Entries::Function(name) });
    }
    let attributes: Vec<&Arg> = op.args.iter().filter(|arg| !arg.ty.holds_tensors()).collect();
    let arguments = (!attributes.is_empty()).then(|| {
        let names = op.args.iter().map(|arg| match arg.ty.holds_tensors() {
            true => quote!(_),
            false => parameter(arg).into_token_stream(),
        });
        quote!(let [#(#names),*] = rt::generated::arguments(#call);)
    });
    let attributes = bind::by_name(attributes.into_iter());
    let mut loops =
        Loops { generation, op, call: &call, dtype: &dtype, source: &source, structs: Vec::new() };
    let launches = loops.of(expr);
    let (text, operator) = (loops.structs.concat(), op.name.to_string());
    let lines = std::iter::once("namespace opsmith {").chain(text.lines()).chain(["}"]);
    let definition = quote! {
        #[allow(unused, reason = "an expression need not use everything")]
        fn #name(#call: &KernelCall<'_>, #dtype: DType) -> rt::Result<()> {
            let #source = rt::device_source!(#operator, #headers, #(#lines)*);
            #arguments
            #attributes
            #launches
        }
    };
    Some(Adapter { definition, entries: Entries::OfDType(name) })
}

/// The loops of one operator.
struct Loops<'a> {
    generation: &'a Generation<'a>,
    op: &'a Op,
    call: &'a Ident,
    dtype: &'a Ident,
    source: &'a Ident,
    /// The struct of each loop.
    structs: Vec<String>,
}

impl Loops<'_> {
    /// Launches of the loop. A condition that is the same for all elements chooses between loops.
    fn of(&mut self, expr: &Expr) -> TokenStream {
        let (op, generation) = (self.op, self.generation);
        if let Some(condition) = uniform_condition(op, expr) {
            let condition = super::pointwise::attribute(generation, op, &condition);
            let yes = self.of(&with_branch(op, expr, true));
            let no = self.of(&with_branch(op, expr, false));
            return quote!(if #condition { #yes } else { #no });
        }
        let variant = u8::try_from(self.structs.len()).expect("a pointwise expression has few loops");
        let inputs = op.read_tensors(expr);
        let (text, constants) = text::of_loop(generation, op, expr, &inputs, (variant, self.dtype));
        self.structs.push(text);
        let (call, dtype, source) = (self.call, self.dtype, self.source);
        let inputs = inputs.into_iter().map(position);
        quote!(device_loop::run(#call, #source, #variant, #dtype, &[#(#inputs),*], &[#(#constants),*]))
    }
}
