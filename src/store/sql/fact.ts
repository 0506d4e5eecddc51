/** A fact of the doctor: what holds of the stored rows, and a query of SQLite that finds its violations. */

/** `sql` returns one row with one text for each violation, SHOWN at most. */
export type Fact = { readonly name: string; readonly holds: string; readonly sql: string };

export const SHOWN = 5;

export const QUESTION_STATE = "coalesce(json_extract(questions, '$.state'), 'none')";
