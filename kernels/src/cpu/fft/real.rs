//! Transforms of real numbers as complex ones of half the length, and their conjugate frequencies.
//!
//! Source: an even number of reals are the parts of half as many complex numbers, whose transform is that of the even ones
//! plus `i` times that of the odd ones; their conjugate halves separate the two.

use opsmith_runtime::Scratch;
use opsmith_runtime::simd::widest;

use super::lines::Lines;
use super::plan::root;
use super::{Job, Kind, TOGETHER};

/// The steps before and after the transform of complex numbers.
pub(super) struct Halves {
    kind: Kind,
    /// Numbers of a line: reals, if one side is.
    length: usize,
    /// Places that are read, and written.
    pub places_in: usize,
    pub places_out: usize,
    /// The powers of the root of unity of an even length, up to its half.
    roots: Scratch<(f64, f64)>,
}

impl Halves {
    pub fn of(job: &Job) -> Halves {
        let (core, half) = (job.core(), job.length / 2 + 1);
        let (places_in, places_out) = match job.kind {
            Kind::Numbers => (core, core),
            Kind::FromReals { onesided: true } => (core, half),
            Kind::FromReals { onesided: false } => (core, job.length),
            Kind::ToReals => (half, core),
        };
        let count = if core < job.length { core + 1 } else { 0 };
        let root = |number| root(number, job.length, job.direction.sign());
        let roots = (0..count).map(root).collect();
        Halves { kind: job.kind, length: job.length, places_in, places_out, roots }
    }

    /// From the numbers that were read to those that are transformed.
    pub fn before(&self, lines: &mut Lines) {
        if self.kind != Kind::ToReals {
            return;
        }
        if self.roots.is_empty() {
            return self.mirror(lines);
        }
        let core = self.length / 2;
        // The parts that are no real numbers' transform are left out.
        lines.values.im[0] = [0.0; TOGETHER];
        lines.values.im[core] = [0.0; TOGETHER];
        self.combine(lines, core, 1.0);
    }

    /// From the transform to the numbers that are written.
    pub fn after(&self, lines: &mut Lines) {
        let Kind::FromReals { onesided } = self.kind else { return };
        if !self.roots.is_empty() {
            let core = self.length / 2;
            for parts in [&mut lines.values.re, &mut lines.values.im] {
                parts[core] = parts[0];
            }
            self.combine(lines, core + 1, 0.5);
            if !onesided {
                self.mirror(lines);
            }
        }
    }

    /// The first `places` of `factor (Z_k + conj Z_{n/2-k} + sign i root_k (Z_k - conj Z_{n/2-k}))`.
    fn combine(&self, lines: &mut Lines, places: usize, factor: f64) {
        let core = self.length / 2;
        let Lines { values, work, .. } = lines;
        let (re, im) = (&values.re[..=core], &values.im[..=core]);
        let (to_re, to_im) = (&mut work.re[..places], &mut work.im[..places]);
        let roots = &self.roots[..places];
        // Forward, `-i` times the root; back, `i` times it.
        let sign = if self.kind == Kind::ToReals { factor } else { -factor };
        widest(
            #[inline(always)]
            move || {
                for place in 0..places {
                    let (root_re, root_im) = (sign * roots[place].0, sign * roots[place].1);
                    let (own_re, own_im) = (re[place], im[place]);
                    let (other_re, other_im) = (re[core - place], im[core - place]);
                    let (mut new_re, mut new_im) = ([0.0; TOGETHER], [0.0; TOGETHER]);
                    for line in 0..TOGETHER {
                        let (sum_re, sum_im) = (own_re[line] + other_re[line], own_im[line] - other_im[line]);
                        let (rest_re, rest_im) =
                            (own_re[line] - other_re[line], own_im[line] + other_im[line]);
                        new_re[line] = factor * sum_re - (root_im * rest_re + root_re * rest_im);
                        new_im[line] = factor * sum_im + (root_re * rest_re - root_im * rest_im);
                    }
                    (to_re[place], to_im[place]) = (new_re, new_im);
                }
            },
        );
        std::mem::swap(values, work);
    }

    /// The frequencies beyond the first half, which are conjugates.
    fn mirror(&self, lines: &mut Lines) {
        for place in self.length / 2 + 1..self.length {
            let other = self.length - place;
            lines.values.re[place] = lines.values.re[other];
            lines.values.im[place] = lines.values.im[other].map(|part| -part);
        }
    }
}
