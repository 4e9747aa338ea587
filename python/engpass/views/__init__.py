"""Views: functions from a result to a document, a table or sentences."""
