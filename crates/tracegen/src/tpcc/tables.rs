//! The columns of TPC-C's tables (clause 1.3), in the order in which the generator gives their values.

use super::table::Definition;
use super::table::Type::{Decimal, Number, Text, Time};

pub(super) const WAREHOUSE: Definition = Definition {
    name: "warehouse",
    columns: &[
        ("w_id", Number),
        ("w_name", Text),
        ("w_street_1", Text),
        ("w_street_2", Text),
        ("w_city", Text),
        ("w_state", Text),
        ("w_zip", Text),
        ("w_tax", Decimal(4, 4)),
        ("w_ytd", Decimal(12, 2)),
    ],
};

pub(super) const DISTRICT: Definition = Definition {
    name: "district",
    columns: &[
        ("d_id", Number),
        ("d_w_id", Number),
        ("d_name", Text),
        ("d_street_1", Text),
        ("d_street_2", Text),
        ("d_city", Text),
        ("d_state", Text),
        ("d_zip", Text),
        ("d_tax", Decimal(4, 4)),
        ("d_ytd", Decimal(12, 2)),
        ("d_next_o_id", Number),
    ],
};

pub(super) const CUSTOMER: Definition = Definition {
    name: "customer",
    columns: &[
        ("c_id", Number),
        ("c_d_id", Number),
        ("c_w_id", Number),
        ("c_first", Text),
        ("c_middle", Text),
        ("c_last", Text),
        ("c_street_1", Text),
        ("c_street_2", Text),
        ("c_city", Text),
        ("c_state", Text),
        ("c_zip", Text),
        ("c_phone", Text),
        ("c_since", Time),
        ("c_credit", Text),
        ("c_credit_lim", Decimal(12, 2)),
        ("c_discount", Decimal(4, 4)),
        ("c_balance", Decimal(12, 2)),
        ("c_ytd_payment", Decimal(12, 2)),
        ("c_payment_cnt", Number),
        ("c_delivery_cnt", Number),
        ("c_data", Text),
    ],
};

pub(super) const HISTORY: Definition = Definition {
    name: "history",
    columns: &[
        ("h_c_id", Number),
        ("h_c_d_id", Number),
        ("h_c_w_id", Number),
        ("h_d_id", Number),
        ("h_w_id", Number),
        ("h_date", Time),
        ("h_amount", Decimal(6, 2)),
        ("h_data", Text),
    ],
};

pub(super) const ORDERS: Definition = Definition {
    name: "orders",
    columns: &[
        ("o_id", Number),
        ("o_d_id", Number),
        ("o_w_id", Number),
        ("o_c_id", Number),
        ("o_entry_d", Time),
        ("o_carrier_id?", Number),
        ("o_ol_cnt", Number),
        ("o_all_local", Number),
    ],
};

pub(super) const NEW_ORDER: Definition =
    Definition { name: "new_order", columns: &[("no_o_id", Number), ("no_d_id", Number), ("no_w_id", Number)] };

pub(super) const ITEM: Definition = Definition {
    name: "item",
    columns: &[("i_id", Number), ("i_im_id", Number), ("i_name", Text), ("i_price", Decimal(5, 2)), ("i_data", Text)],
};

pub(super) const STOCK: Definition = Definition {
    name: "stock",
    columns: &[
        ("s_i_id", Number),
        ("s_w_id", Number),
        ("s_quantity", Number),
        ("s_dist_01", Text),
        ("s_dist_02", Text),
        ("s_dist_03", Text),
        ("s_dist_04", Text),
        ("s_dist_05", Text),
        ("s_dist_06", Text),
        ("s_dist_07", Text),
        ("s_dist_08", Text),
        ("s_dist_09", Text),
        ("s_dist_10", Text),
        ("s_ytd", Number),
        ("s_order_cnt", Number),
        ("s_remote_cnt", Number),
        ("s_data", Text),
    ],
};

pub(super) const ORDER_LINE: Definition = Definition {
    name: "order_line",
    columns: &[
        ("ol_o_id", Number),
        ("ol_d_id", Number),
        ("ol_w_id", Number),
        ("ol_number", Number),
        ("ol_i_id", Number),
        ("ol_supply_w_id", Number),
        ("ol_delivery_d?", Time),
        ("ol_quantity", Number),
        ("ol_amount", Decimal(6, 2)),
        ("ol_dist_info", Text),
    ],
};
