-- Money that matches no order waits here for a person. How much that is, is asked at every look at the metrics; the index holds
-- these few transfers alone.
CREATE INDEX ledger_transfers_in_suspense ON ledger_transfers (currency)
  WHERE 'suspense' IN (debit_account, credit_account);
