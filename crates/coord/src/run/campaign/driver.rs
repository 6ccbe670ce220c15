//! Drives the replayers: the fleet, the runtime on which its calls run, and Ctrl-C.

use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::fleet::{Fleet, FleetSetting, Order, Ran};
use crate::terminal::{Interrupt, Stage};

/// The replayers of a campaign. The fleet comes first, so that it is dropped before the runtime.
pub(super) struct Driver {
    pub(super) fleet: Fleet,
    pub(super) interrupt: Interrupt,
    pub(super) runtime: Runtime,
}

impl Driver {
    /// Connects to the replayers, or starts them on this machine.
    pub(super) fn open(runtime: Runtime, interrupt: Interrupt, setting: &FleetSetting) -> Result<Driver, Failure> {
        let fleet = runtime.block_on(Fleet::open(setting))?;
        Ok(Driver { fleet, interrupt, runtime })
    }

    /// Measures the weights of the replayers with an order.
    pub(super) fn calibrate(&mut self, order: &Order<'_>) -> Result<(), Failure> {
        self.runtime.block_on(self.fleet.calibrate(order, &mut self.interrupt))
    }

    /// Runs an experiment.
    pub(super) fn experiment(
        &mut self,
        order: &Order<'_>,
        watch: &mut (dyn FnMut(Stage) + Send),
    ) -> Result<Ran, Failure> {
        self.runtime.block_on(self.fleet.experiment(order, &mut self.interrupt, watch))
    }

    /// Waits until all replayers are there again.
    pub(super) fn recover(&mut self) -> Result<(), Failure> {
        self.runtime.block_on(self.fleet.recover(&mut self.interrupt))
    }

    /// Fails after an interrupt.
    pub(super) fn check_interrupt(&self) -> Result<(), Failure> {
        if self.interrupt.has_come() { Err(Failure::Interrupted { run: None }) } else { Ok(()) }
    }
}
