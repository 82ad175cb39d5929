-- A search says of each entry that it shows what kind it is: by its id it is fetched alone. Without an index every entry is read, 4 ms of 100,000.
CREATE INDEX talos_journal_by_entry ON talos_journal (entry_id);
