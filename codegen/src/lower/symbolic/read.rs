//! Syntax trees to algebra.

use super::{Sym, branch, call, infix, prefix};

/// Syntax to algebra, with `let` names replaced by their values.
pub(super) struct Reader {
    bound: Vec<(String, Sym)>,
}

impl Reader {
    pub fn new() -> Reader {
        Reader { bound: Vec::new() }
    }

    pub fn read(&mut self, tree: &syn::Expr) -> Option<Sym> {
        Some(match tree {
            syn::Expr::Paren(inner) => self.read(&inner.expr)?,
            syn::Expr::Group(inner) => self.read(&inner.expr)?,
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Int(value) => Sym::Number(value.base10_parse().ok()?),
                syn::Lit::Float(value) => Sym::Number(value.base10_parse().ok()?),
                syn::Lit::Str(text) => Sym::Literal(format!("{:?}", text.value())),
                syn::Lit::Bool(value) => Sym::Literal(value.value.to_string()),
                _ => return None,
            },
            syn::Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                match self.bound.iter().rev().find(|(bound, _)| *bound == name) {
                    Some((_, value)) => value.clone(),
                    None => Sym::Name(name),
                }
            }
            syn::Expr::Call(function) => {
                let syn::Expr::Path(path) = &*function.func else { return None };
                let name = path.path.get_ident()?.to_string();
                call(&name, function.args.iter().map(|arg| self.read(arg)).collect::<Option<_>>()?)
            }
            syn::Expr::Unary(unary) => match unary.op {
                syn::UnOp::Neg(_) => prefix('-', self.read(&unary.expr)?),
                syn::UnOp::Not(_) => prefix('!', self.read(&unary.expr)?),
                _ => return None,
            },
            syn::Expr::Binary(binary) => {
                let symbol = symbol(&binary.op)?;
                infix(symbol, self.read(&binary.left)?, self.read(&binary.right)?)
            }
            syn::Expr::If(choice) => {
                let (_, no) = choice.else_branch.as_ref()?;
                branch(self.read(&choice.cond)?, self.block(&choice.then_branch)?, self.read(no)?)
            }
            syn::Expr::Block(block) => self.block(&block.block)?,
            _ => return None,
        })
    }

    fn block(&mut self, block: &syn::Block) -> Option<Sym> {
        let outer = self.bound.len();
        let mut result = None;
        for statement in &block.stmts {
            match statement {
                syn::Stmt::Local(local) => {
                    let syn::Pat::Ident(pattern) = &local.pat else { return None };
                    let value = self.read(&local.init.as_ref()?.expr)?;
                    self.bound.push((pattern.ident.to_string(), value));
                }
                syn::Stmt::Expr(tail, None) => result = self.read(tail),
                _ => return None,
            }
        }
        self.bound.truncate(outer);
        result
    }
}

fn symbol(op: &syn::BinOp) -> Option<&'static str> {
    Some(match op {
        syn::BinOp::Add(_) => "+",
        syn::BinOp::Sub(_) => "-",
        syn::BinOp::Mul(_) => "*",
        syn::BinOp::Div(_) => "/",
        syn::BinOp::Rem(_) => "%",
        syn::BinOp::Lt(_) => "<",
        syn::BinOp::Le(_) => "<=",
        syn::BinOp::Gt(_) => ">",
        syn::BinOp::Ge(_) => ">=",
        syn::BinOp::Eq(_) => "==",
        syn::BinOp::Ne(_) => "!=",
        syn::BinOp::And(_) => "&&",
        syn::BinOp::Or(_) => "||",
        _ => return None,
    })
}
