//! The back end of a device, and its implementation of each group of operations.

use std::sync::Arc;

use super::checked::Checked;
use super::host::Host;
use super::kernels_checksum;
use super::linear::generated::GeneratedOps;
use super::linear::pointwise::PointwiseOps;
use super::linear::product::ProductOps;
use super::linear::projection::ProjectionOps;
use super::linear::scatter::ScatterOps;
use super::linear::selection::SelectionOps;
use super::linear::split::SplitOps;
use super::linear::vector::VectorOps;
use super::opencl::OpenCl;
#[cfg(feature = "fem")]
use super::pde::elements::ElementOps;
#[cfg(feature = "simulation")]
use super::pde::flow::FlowOps;
use super::precond::block_jacobi::BlockJacobiOps;
use super::precond::elimination::EliminationOps;
use super::precond::factor_sweep::FactorSweepOps;
use super::precond::parts::PartsOps;
use super::precond::polynomial::PolynomialOps;
use super::precond::sweep::SweepOps;
use super::script::ScriptOps;
use super::script::basis::BasisOps;
use super::script::cg::CgOps;
use super::script::cgnr::CgnrOps;
use super::script::limit::LimitOps;
use super::script::variation::VariationOps;
#[cfg(feature = "imaging")]
use super::tomography::fbp::FbpOps;
#[cfg(feature = "imaging")]
use super::tomography::rays::RayOps;
use crate::memory::Place;
use crate::number::{Real, per_number};
use crate::ocl::Context;
use crate::threads;

/// The back end of a device.
#[derive(Debug)]
pub(crate) enum AnyBackend {
    Host(Host),
    // Boxed, because the host back end beside it is small.
    OpenCl(Box<Checked<OpenCl>>),
}

impl AnyBackend {
    pub(crate) fn opencl(context: Arc<Context>) -> Self {
        Self::OpenCl(Box::new(Checked::new(OpenCl::new(context, kernels_checksum))))
    }

    /// Place of its memory.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Host(_) => Place::Host,
            Self::OpenCl(checked) => Place::OpenCl(checked.device.context.clone()),
        }
    }

    /// Does `work`, which queues many launches: on the host by one of the threads that share each of them ([`threads::among_threads`]).
    pub(crate) fn queue<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self {
            Self::Host(_) => threads::among_threads(work),
            Self::OpenCl(_) => work(),
        }
    }

    /// The OpenCL context, if it has one.
    pub(crate) fn context(&self) -> Option<&Arc<Context>> {
        match self {
            Self::Host(_) => None,
            Self::OpenCl(checked) => Some(&checked.device.context),
        }
    }
}

/// Gives the back end a method for each group, which hands out its implementation. With `checked` it is the [`Checked`] itself, which compares
/// first results with the host.
macro_rules! dispatch {
    ($($(#[$when:meta])* $group:ident: $operations:ident $(, $checked:ident)?;)+) => {
        $($(#[$when])* mod $group {
            use super::*;

            per_number! {
                pub(super) fn on<'b, T>(backend: &'b AnyBackend) -> &'b dyn $operations<T> = dispatch;
            }

            fn dispatch<T: Real>(backend: &AnyBackend) -> &dyn $operations<T> {
                match backend {
                    AnyBackend::Host(host) => host,
                    AnyBackend::OpenCl(device) => dispatch!(@device device $($checked)?),
                }
            }
        })+

        impl AnyBackend {
            $(
                $(#[$when])*
                #[doc = concat!("[`", stringify!($operations), "`] on this back end.")]
                pub(crate) fn $group<T: Real>(&self) -> &dyn $operations<T> {
                    $group::on(self)
                }
            )+
        }
    };
    (@device $device:ident) => {
        &$device.device
    };
    (@device $device:ident checked) => {
        &**$device
    };
}

dispatch! {
    vector: VectorOps;
    pointwise: PointwiseOps;
    product: ProductOps;
    generated: GeneratedOps;
    split: SplitOps;
    selection: SelectionOps;
    #[cfg(feature = "imaging")]
    rays: RayOps, checked;
    #[cfg(feature = "imaging")]
    fbp: FbpOps;
    scatter: ScatterOps;
    sweep: SweepOps;
    block_jacobi: BlockJacobiOps;
    factor_sweep: FactorSweepOps;
    elimination: EliminationOps;
    parts: PartsOps;
    polynomial: PolynomialOps;
    projection: ProjectionOps;
    #[cfg(feature = "simulation")]
    flow: FlowOps;
    #[cfg(feature = "fem")]
    elements: ElementOps;
    script: ScriptOps, checked;
    basis: BasisOps, checked;
    limit: LimitOps;
    variation: VariationOps;
    cg: CgOps, checked;
    cgnr: CgnrOps, checked;
}
