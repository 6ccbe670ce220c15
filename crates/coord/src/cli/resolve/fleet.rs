//! Which replayers take part in a run.

use crate::cli::args::FleetArgs;
use crate::failure::Failure;
use crate::fleet::FleetSetting;

/// Resolves which replayers take part.
pub fn fleet(args: &FleetArgs) -> Result<FleetSetting, Failure> {
    let mut names: Vec<String> = args.replayers.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!(
            "--replayer {} is given twice; give it once, with a weight: {}*2",
            twice[0], twice[0]
        )));
    }
    let token = args.secrets.token_file.as_ref().map(|path| {
        let text = std::fs::read_to_string(path);
        text.map(|text| text.trim().to_string())
            .map_err(|e| Failure::usage(format!("--token-file {}: {e}", path.display())))
    });
    let named = args.replayers.len();
    let count = args.count.map_or(named.max(1), |count| count as usize);
    if named > 0 && count > named {
        return Err(Failure::usage(format!("--replayers {count}: --replayer names only {named}")));
    }
    if let Some(weighted) = args.replayers.iter().find(|replayer| args.calibrate && replayer.weight != 1.0) {
        let weight = weighted.weight;
        return Err(Failure::usage(format!(
            "--calibrate and the weight of --replayer {weighted}*{weight} exclude each other; remove one"
        )));
    }
    let replayers = args.replayers.iter().take(count).cloned().collect();
    let certificates = args.secrets.certs.clone();
    let FleetArgs { calibrate, leave_logs, .. } = *args;
    Ok(FleetSetting { replayers, count, calibrate, leave_logs, certificates, token: token.transpose()? })
}
