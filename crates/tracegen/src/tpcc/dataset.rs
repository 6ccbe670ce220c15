//! The rows of TPC-C's tables before the first session (clause 4.3.3.1). Each warehouse has random numbers of its
//! own, so its rows do not depend on the fragments.

use std::path::Path;

use schemas::manifest::FileEntry;
use schemas::workload::tpcc::{DISTRICTS, Data};

use super::random::{Constants, LAST_NAMES, digits, last_name, letters, percent, uniform};
use super::table::Cell::{Decimal, Null, Number, Text, Time};
use super::table::Table;
use super::tables;
use crate::core::chance::Stream;
use crate::core::error::GenerateError;

/// When all rows were entered: 2026-01-01 09:00:00, in microseconds since 1970. The clock of the machine would make
/// other bytes each time.
pub(super) const LOADED_US: i64 = 1_767_258_000_000_000;

/// The least and the most lines of an order (clause 2.4.1.3).
pub(super) const LINES: (u64, u64) = (5, 15);

/// What a customer has paid before the first session, in cents.
const PAID: i64 = 1_000;

/// How much of the rows with a data column holds the text ORIGINAL, in percent.
const ORIGINAL: u64 = 10;

/// Writes the rows of a fragment's warehouses. The first fragment has the items, which belong to no warehouse.
pub(super) fn write(
    folder: &Path,
    fragment: u32,
    warehouses: impl Iterator<Item = u64>,
    (seed, data): (u64, &Data),
) -> Result<Vec<FileEntry>, GenerateError> {
    let mut files = Vec::new();
    if fragment == 0 {
        files.push(items(folder, seed, data)?);
    }
    let table = |definition| Table::create(folder, fragment, definition);
    let mut rows = Rows {
        data,
        constants: Constants::new(seed),
        warehouse: table(&tables::WAREHOUSE)?,
        district: table(&tables::DISTRICT)?,
        customer: table(&tables::CUSTOMER)?,
        history: table(&tables::HISTORY)?,
        orders: table(&tables::ORDERS)?,
        new_order: table(&tables::NEW_ORDER)?,
        stock: table(&tables::STOCK)?,
        order_line: table(&tables::ORDER_LINE)?,
        texts: Default::default(),
    };
    for warehouse in warehouses {
        // There are at most a million warehouses.
        let mut chance = Stream::new(seed, "tpcc warehouse", warehouse as u32);
        rows.warehouse(warehouse, &mut chance)?;
    }
    let Rows { warehouse, district, customer, history, orders, new_order, stock, order_line, .. } = rows;
    for table in [warehouse, district, customer, history, orders, new_order, stock, order_line] {
        files.push(table.finish()?);
    }
    Ok(files)
}

fn items(folder: &Path, seed: u64, data: &Data) -> Result<FileEntry, GenerateError> {
    let mut chance = Stream::new(seed, "tpcc items", 0);
    let mut table = Table::create(folder, 0, &tables::ITEM)?;
    let (mut name, mut about) = (String::new(), String::new());
    for item in 1..=data.items {
        let image = uniform(&mut chance, 1, 10_000);
        letters(&mut chance, 14, 24, &mut name);
        let price = uniform(&mut chance, 100, 10_000) as i64;
        about_goods(&mut chance, &mut about);
        table.push([Number(item), Number(image), Text(&name), Decimal(price), Text(&about)])?;
    }
    table.finish()
}

/// The data of an item or a stock: some of them hold ORIGINAL at a random place.
fn about_goods(chance: &mut Stream, text: &mut String) {
    const WORD: &str = "ORIGINAL";
    letters(chance, 26, 50, text);
    if percent(chance, ORIGINAL) {
        let start = chance.below((text.len() - WORD.len() + 1) as u64) as usize;
        text.replace_range(start..start + WORD.len(), WORD);
    }
}

/// Texts of a row that is being made.
#[derive(Default)]
struct Texts {
    name: String,
    first: String,
    streets: [String; 2],
    city: String,
    state: String,
    zip: String,
    phone: String,
    about: String,
    districts: [String; DISTRICTS as usize],
}

impl Texts {
    fn address(&mut self, chance: &mut Stream) {
        for street in &mut self.streets {
            letters(chance, 10, 20, street);
        }
        letters(chance, 10, 20, &mut self.city);
        letters(chance, 2, 2, &mut self.state);
        // Clause 4.3.2.7.
        digits(chance, 4, 4, &mut self.zip);
        self.zip.push_str("11111");
    }
}

/// The tables of a fragment.
struct Rows<'a> {
    data: &'a Data,
    constants: Constants,
    warehouse: Table,
    district: Table,
    customer: Table,
    history: Table,
    orders: Table,
    new_order: Table,
    stock: Table,
    order_line: Table,
    texts: Texts,
}

impl Rows<'_> {
    fn warehouse(&mut self, w: u64, chance: &mut Stream) -> Result<(), GenerateError> {
        let paid_in_district = PAID * self.data.customers as i64;
        let texts = &mut self.texts;
        letters(chance, 6, 10, &mut texts.name);
        texts.address(chance);
        let tax = chance.below(2_001) as i64;
        let Texts { name, streets: [street, street_2], city, state, zip, .. } = texts;
        self.warehouse.push([
            Number(w),
            Text(name),
            Text(street),
            Text(street_2),
            Text(city),
            Text(state),
            Text(zip),
            Decimal(tax),
            Decimal(paid_in_district * DISTRICTS as i64),
        ])?;
        for item in 1..=self.data.items {
            self.stock(w, item, chance)?;
        }
        for district in 1..=DISTRICTS {
            let texts = &mut self.texts;
            letters(chance, 6, 10, &mut texts.name);
            texts.address(chance);
            let tax = chance.below(2_001) as i64;
            let Texts { name, streets: [street, street_2], city, state, zip, .. } = texts;
            self.district.push([
                Number(district),
                Number(w),
                Text(name),
                Text(street),
                Text(street_2),
                Text(city),
                Text(state),
                Text(zip),
                Decimal(tax),
                Decimal(paid_in_district),
                Number(self.data.customers + 1),
            ])?;
            for customer in 1..=self.data.customers {
                self.customer((w, district, customer), chance)?;
            }
            self.district_orders(w, district, chance)?;
        }
        Ok(())
    }

    fn stock(&mut self, w: u64, item: u64, chance: &mut Stream) -> Result<(), GenerateError> {
        let quantity = uniform(chance, 10, 100);
        for text in &mut self.texts.districts {
            letters(chance, 24, 24, text);
        }
        about_goods(chance, &mut self.texts.about);
        let [a, b, c, d, e, f, g, h, i, j] = &self.texts.districts;
        self.stock.push([
            Number(item),
            Number(w),
            Number(quantity),
            Text(a),
            Text(b),
            Text(c),
            Text(d),
            Text(e),
            Text(f),
            Text(g),
            Text(h),
            Text(i),
            Text(j),
            Number(0),
            Number(0),
            Number(0),
            Text(&self.texts.about),
        ])
    }

    fn customer(&mut self, (w, d, c): (u64, u64, u64), chance: &mut Stream) -> Result<(), GenerateError> {
        let texts = &mut self.texts;
        let name = if c <= LAST_NAMES { c - 1 } else { self.constants.last_name_at_load(chance) };
        last_name(name, &mut texts.name);
        letters(chance, 8, 16, &mut texts.first);
        texts.address(chance);
        digits(chance, 16, 16, &mut texts.phone);
        let credit = if percent(chance, 10) { "BC" } else { "GC" };
        let discount = chance.below(5_001) as i64;
        letters(chance, 300, 500, &mut texts.about);
        let Texts { name, first, streets: [street, street_2], city, state, zip, phone, about, .. } = texts;
        self.customer.push([
            Number(c),
            Number(d),
            Number(w),
            Text(first),
            Text("OE"),
            Text(name),
            Text(street),
            Text(street_2),
            Text(city),
            Text(state),
            Text(zip),
            Text(phone),
            Time(LOADED_US),
            Text(credit),
            Decimal(5_000_000),
            Decimal(discount),
            Decimal(-PAID),
            Decimal(PAID),
            Number(1),
            Number(0),
            Text(about),
        ])?;
        letters(chance, 12, 24, &mut self.texts.about);
        let (about, when) = (Text(&self.texts.about), Time(LOADED_US));
        self.history.push([Number(c), Number(d), Number(w), Number(d), Number(w), when, Decimal(PAID), about])
    }

    /// The first orders of a district: one of each customer, in random order. The last of them are new.
    fn district_orders(&mut self, w: u64, d: u64, chance: &mut Stream) -> Result<(), GenerateError> {
        // There are at most 3,000 customers.
        let mut customers: Vec<u32> = (1..=self.data.customers as u32).collect();
        chance.shuffle(&mut customers);
        for (order, customer) in (1..).zip(customers) {
            let is_delivered = order <= self.data.delivered();
            let carrier = uniform(chance, 1, 10);
            let carrier = if is_delivered { Number(carrier) } else { Null };
            let lines = uniform(chance, LINES.0, LINES.1);
            self.orders.push([
                Number(order),
                Number(d),
                Number(w),
                Number(customer.into()),
                Time(LOADED_US),
                carrier,
                Number(lines),
                Number(1),
            ])?;
            if !is_delivered {
                self.new_order.push([Number(order), Number(d), Number(w)])?;
            }
            for line in 1..=lines {
                let item = uniform(chance, 1, self.data.items);
                let amount = uniform(chance, 1, 999_999) as i64;
                let about = &mut self.texts.about;
                letters(chance, 24, 24, about);
                self.order_line.push([
                    Number(order),
                    Number(d),
                    Number(w),
                    Number(line),
                    Number(item),
                    Number(w),
                    if is_delivered { Time(LOADED_US) } else { Null },
                    Number(5),
                    Decimal(if is_delivered { 0 } else { amount }),
                    Text(about),
                ])?;
            }
        }
        Ok(())
    }
}
